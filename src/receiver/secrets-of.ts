/** The secrets of a receiver, for what explains its signatures. Nothing that users see. */

import { SOURCE_NAME_LIMIT } from '../message/limits.ts'
import type { Receiver } from './api.ts'
import type { ReceiverOptions } from './options.ts'
import type { SourceRequest } from './secrets.ts'

type Given = ReceiverOptions['secret']

const given = new WeakMap<Receiver, Given>()

export function noteSecret(receiver: Receiver, secret: Given): void {
  given.set(receiver, secret)
}

/**
 * Reads the secrets that a request to the receiver may be signed with, in the order of `delivery.secretIndex`: calls
 * the functions that it was given, past its cache. Rejects when one of them fails, and waits for as long as it takes.
 * An empty list for a receiver of unsigned messages, for a source that is unknown, and for what `createReceiver` did
 * not make.
 */
export async function secretsOf(receiver: Receiver, request: SourceRequest): Promise<readonly string[]> {
  const secret = given.get(receiver)
  if (secret === undefined) return []
  if (typeof secret === 'function') return listOf(await secret())
  if (typeof secret === 'string' || !('secrets' in secret)) return listOf(secret)
  const name = secret.source(request)
  return name && name.length <= SOURCE_NAME_LIMIT ? listOf(await secret.secrets(name)) : []
}

function listOf(secrets: string | readonly (string | undefined)[] | undefined): readonly string[] {
  return [secrets].flat().filter((secret) => secret !== undefined)
}

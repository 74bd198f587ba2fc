/** Lets an inspector read the secrets and the schemas of a receiver, which the receiver itself does not expose. */

import { SOURCE_NAME_LIMIT } from '../protocol/limits.ts'
import type { ReceiverOptions } from './receiver-options.ts'
import { isSourceSecrets, type SourceRequest } from './secrets.ts'

/** The options of each receiver that `createReceiver` made. */
const optionsOf = new WeakMap<object, ReceiverOptions>()

/** Lets {@link secretsOf} and {@link schemasOf} read the options of a receiver. */
export function rememberOptions(receiver: object, options: ReceiverOptions): void {
  optionsOf.set(receiver, options)
}

/**
 * Reads the secrets that a request to the receiver may be signed with, in the order of `delivery.secretIndex`. Does not
 * use the cache of the receiver: calls the functions in its options, and waits for them without a limit. Rejects if a
 * function fails. Returns an empty list for a receiver of unsigned messages, for an unknown source, and for an object
 * that `createReceiver` did not make.
 */
export async function secretsOf(receiver: object, request: SourceRequest): Promise<readonly string[]> {
  const secret = optionsOf.get(receiver)?.secret
  const readSecret = async () => {
    if (typeof secret === 'function') return secret()
    if (!isSourceSecrets(secret)) return secret
    const name = secret.source(request)
    return name && name.length <= SOURCE_NAME_LIMIT ? secret.secrets(name) : undefined
  }
  return [await readSecret()].flat().filter((each) => each !== undefined)
}

/** The names of the events and the message types that have a schema. */
export interface Schemas {
  /** The names of the events; undefined without the `events` option. */
  readonly events: readonly string[] | undefined
  /** `identify`, `group` or both; undefined without the `traits` option. */
  readonly traits: readonly string[] | undefined
  readonly custom: boolean
}

export function schemasOf(receiver: object): Schemas {
  const { events, traits, custom } = optionsOf.get(receiver) ?? {}
  return {
    events: events && Object.keys(events),
    traits: traits && Object.keys(traits),
    custom: custom !== undefined && typeof custom !== 'boolean',
  }
}

/** A message as the queue of a destination stores it: the bytes that are posted or, when its functions failed, the original. */

import { serialise } from '../message/compose.ts'
import type { Message } from '../message/message.ts'

/** Which functions an original needs before it can be sent. */
export interface Needs {
  /** Those of the destination. */
  readonly own: boolean
  /** Those of this source; null for none. */
  readonly source: string | null
}

/** Before an original: it is never posted like this. */
const SPACE = 0x20

/** The field of an original that says what it needs. It replaces one that the message had. */
const NEEDS = 'hookline:needs'

export function isOriginal(body: Uint8Array): boolean {
  return body[0] === SPACE
}

export function writeOriginal(message: Message, needs: Needs): Uint8Array {
  return Buffer.concat([Buffer.of(SPACE), serialise(Object.assign({}, message, { [NEEDS]: needs }))])
}

/** Parses the body of a job, which was checked before it was queued. */
export function readOriginal(body: Uint8Array): { readonly message: Message; readonly needs: Needs } {
  const message = JSON.parse(Buffer.from(body).toString())
  const needs = message[NEEDS]
  if (isOriginal(body)) delete message[NEEDS]
  if (message.type === 'alias') message.previousId = message['Previous ID']
  return { message, needs }
}

export function readMessage(body: Uint8Array): Message {
  return readOriginal(body).message
}

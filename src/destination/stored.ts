/** A message as the queue of a destination stores it: the bytes that are posted or, when its functions failed, the original. */

import { serialise } from '../message/compose.ts'
import type { Message } from '../message/message.ts'

/** Before an original: it is never posted like this. */
const SPACE = 0x20

/** The field of an original that names the source whose functions it needs. */
const SOURCE = 'hookline:source'

/** Parses the body of a job, which was checked before it was queued. */
export function readMessage(body: Uint8Array): Message {
  const message = JSON.parse(Buffer.from(body).toString())
  if (isOriginal(body)) delete message[SOURCE]
  return message.type === 'alias' ? { ...message, previousId: message['Previous ID'] } : message
}

export function writeOriginal(message: Message, source: string | undefined): Uint8Array {
  const original = source === undefined ? message : { ...message, [SOURCE]: source }
  return Buffer.concat([Buffer.of(SPACE), serialise(original)])
}

export function isOriginal(body: Uint8Array): boolean {
  return body[0] === SPACE
}

export function sourceOf(original: Uint8Array): string | undefined {
  return JSON.parse(Buffer.from(original).toString())[SOURCE]
}

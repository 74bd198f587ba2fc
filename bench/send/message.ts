/** What is sent: a track message of 1 KB, as a message, as a call, and in a batch. */

import { event, trackMessage } from '../message.ts'

/** The size of the message as it travels, in bytes. */
const MESSAGE_SIZE = 1024

/** Calls in a batch. */
export const BATCH = 20

/** The write key of the source. */
export const writeKey = 'a write key of the benchmark'

/** What a client shows. */
export const authorization: string = `Basic ${Buffer.from(`${writeKey}:`).toString('base64')}`

/** The path of the endpoint that is never answered. */
export const hangingPath = '/hanging'

/** What each message that is sent holds once. */
export const marker: string = `"event":${JSON.stringify(event)}`

/** The message, as the JSON of what a sender makes of it. It completes it with `context`. */
export const message: TrackMessage = JSON.parse(trackMessage(MESSAGE_SIZE - ',"context":{}'.length).toString())

interface TrackMessage {
  readonly version: 1
  readonly type: 'track'
  readonly userId: string
  readonly messageId: string
  readonly timestamp: string
  readonly event: string
  readonly properties: Readonly<Record<string, unknown>>
}

/** The same as a call of a client, which gives it an id and a time. */
export const call = { userId: message.userId, event: message.event, properties: message.properties }

/** The body of a batch, as clients post it. */
export function batchBody(): Buffer {
  const { version: _, ...recorded } = message
  const batch = Array.from({ length: BATCH }, (_, index) => ({ ...recorded, messageId: `message-${index}` }))
  return Buffer.from(JSON.stringify({ batch, sentAt: message.timestamp }))
}

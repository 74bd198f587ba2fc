/** `receiver.receive()` without any framework, and what it cannot do without: an HMAC and JSON.parse. */

import { createHmac } from 'node:crypto'
import { createReceiver, type Receiver } from 'hookline'
import type { Contender } from '../contender.ts'
import { signBytes } from '../hmac.ts'
import { acceptBare } from '../http/host.ts'
import { event, identifyMessage, secret, signedHeaders, trackMessage } from '../message.ts'

interface Kind {
  readonly body: Buffer
  /** Instead of the receiver. */
  readonly accept?: (body: Buffer, signature: unknown) => boolean
  /** What is registered beside the one handler that gets the message, {@link MANY} times. */
  readonly register?: (receiver: Receiver, i: number) => unknown
}

/** Event names, and audiences. */
const MANY = 1000
const track = trackMessage(1024)
const track10 = trackMessage(10 * 1024)
const identify = Buffer.from(JSON.stringify(identifyMessage))

const kinds = {
  'two hashes': { body: track, accept: (body, signature) => signBytes(body) === signature },
  createHmac: {
    body: track,
    accept: (body, signature) => createHmac('sha1', secret).update(body).digest('hex') === signature,
  },
  floor: { body: track, accept: acceptBare },
  'floor 10 KB': { body: track10, accept: acceptBare },
  track: { body: track },
  'track 10 KB': { body: track10 },
  'event names': { body: track, register: (receiver, i) => receiver.on('track', `${event} ${i}`, () => {}) },
  identify: { body: identify },
  audiences: {
    body: identify,
    register: (receiver, i) => receiver.onAudience(`audience ${i}`, { entered: () => {}, exited: () => {} }),
  },
} as const satisfies Readonly<Record<string, Kind>>

export type ReceiverKind = keyof typeof kinds

export async function openContender(kind: ReceiverKind): Promise<Contender> {
  const { body, accept, register }: Kind = kinds[kind]
  const headers = signedHeaders(body)
  if (accept !== undefined) {
    const signature = headers['x-signature']
    return {
      async run(messages) {
        for (let i = 0; i < messages; i++) if (!accept(body, signature)) throw new Error('refused')
      },
    }
  }
  const receiver = createReceiver({ secret }).on(['track', 'identify'], () => {})
  if (register !== undefined) for (let i = 0; i < MANY; i++) register(receiver, i)
  return {
    async run(messages) {
      for (let i = 0; i < messages; i++) {
        const { status } = await receiver.receive(body, headers)
        if (status !== 200) throw new Error(`receive answered ${status}`)
      }
    },
  }
}

/** `receiver.receive()` without any framework, and what it cannot do without: an HMAC and JSON.parse. */

import { createHmac } from 'node:crypto'
import { createReceiver, type Receiver } from 'hookline'
import type { Contender } from '../contenders.ts'
import { signBytes } from '../hmac.ts'
import { acceptBare } from '../http/host.ts'
import { event, identifyMessage, secret, signedHeaders, trackMessage } from '../message.ts'

/** What is received, and what is registered beside the one handler that gets it. */
const kinds = {
  'two hashes': { body: trackMessage(1024), sign: signBytes },
  createHmac: {
    body: trackMessage(1024),
    sign: (body: Buffer) => createHmac('sha1', secret).update(body).digest('hex'),
  },
  floor: { body: trackMessage(1024) },
  track: { body: trackMessage(1024) },
  'track 10 KB': { body: trackMessage(10 * 1024) },
  'floor 10 KB': { body: trackMessage(10 * 1024) },
  'event names': {
    body: trackMessage(1024),
    register: (receiver: Receiver, i: number) => receiver.on('track', `${event} ${i}`, () => {}),
  },
  identify: { body: Buffer.from(JSON.stringify(identifyMessage)) },
  audiences: {
    body: Buffer.from(JSON.stringify(identifyMessage)),
    register: (receiver: Receiver, i: number) =>
      receiver.onAudience(`audience ${i}`, { entered: () => {}, exited: () => {} }),
  },
} as const satisfies Readonly<
  Record<
    string,
    {
      readonly body: Buffer
      readonly register?: (receiver: Receiver, i: number) => unknown
      readonly sign?: (body: Buffer) => string
    }
  >
>

export type ReceiverKind = keyof typeof kinds

/** Event names, and audiences. */
const MANY = 1000

export async function open(kind: ReceiverKind): Promise<Contender> {
  const { body, ...rest } = kinds[kind]
  const headers = signedHeaders(body)
  if (kind.startsWith('floor') || 'sign' in rest) {
    const signature = headers['x-signature']
    const accepts = (): boolean => ('sign' in rest ? rest.sign(body) === signature : acceptBare(body, signature))
    return {
      async run(messages) {
        for (let i = 0; i < messages; i++) if (!accepts()) throw new Error('refused')
      },
    }
  }
  const receiver = createReceiver({ secret }).on(['track', 'identify'], () => {})
  for (let i = 0; i < MANY; i++) if ('register' in rest) rest.register(receiver, i)
  return {
    async run(messages) {
      for (let i = 0; i < messages; i++) {
        const { status } = await receiver.receive(body, headers)
        if (status !== 200) throw new Error(`receive answered ${status}`)
      }
    },
  }
}

/** Sends a message from the page, with a sender of the app: to its URLs and to no other. */

import type { Message } from '../../message/message.ts'
import type { Sender } from '../../sender/api.ts'
import type { Tampering } from '../../sender/tamper.ts'
import { attemptLine } from '../lines.ts'
import type { Send, Sent } from '../wire.ts'
import { Refusal } from './answers.ts'

/** Sends. */
export interface Sending {
  /** How many are on their way. */
  readonly active: number
  /** @throws Refusal (as a rejection) for an invalid message, an unknown sender, and too many at a time. */
  send(body: { readonly [field in keyof Send]?: unknown }): Promise<Sent>
}

/** The most at a time. */
const MOST = 4

/** @param senders By name. */
export function createSending(senders: ReadonlyMap<string, Sender>): Sending {
  let active = 0
  return {
    get active() {
      return active
    },
    async send({ sender: name, message, tamper }) {
      const sender = senders.get(name as string)
      if (sender === undefined) {
        throw new Refusal(404, 'The sender must be one that the inspector has. Got another name. Reload the page.')
      }
      if (active >= MOST) {
        const text = `The inspector sends ${MOST} messages at a time. Got one more. Wait for the others.`
        throw new Refusal(429, text, { 'retry-after': '1' })
      }
      active += 1
      try {
        const options = tamper === undefined ? undefined : { tamper: tamper as Tampering }
        const { ok, attempts } = await sender.send(message as Message, options)
        return { ok, attempts: attempts.map(attemptLine) }
      } catch (thrown) {
        // A field of the message, or the tampering, is wrong.
        if (thrown instanceof TypeError) throw new Refusal(400, thrown.message)
        throw thrown
      } finally {
        active -= 1
      }
    },
  }
}

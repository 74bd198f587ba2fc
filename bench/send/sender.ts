/** A sender with one URL: every message composed, serialised, signed, posted. */

import { createSender } from 'hookline/sender'
import type { Contender } from '../contenders.ts'
import { secret } from '../message.ts'
import { message } from './message.ts'
import { inParallel } from './parallel.ts'

export async function open(url: string): Promise<Contender> {
  const sender = createSender({ webhooks: [{ url }], sharedSecret: secret })
  const send = async (): Promise<void> => {
    const { ok, attempts } = await sender.send(message)
    if (!ok) throw new Error(`Not delivered: ${JSON.stringify(attempts)}`)
  }
  return { run: (messages) => inParallel(messages, send) }
}

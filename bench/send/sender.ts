/** A sender with one URL: every message composed, serialised, signed, posted. */

import { createSender } from 'hookline/sender'
import { secret } from '../message.ts'
import type { Contender } from './contender.ts'
import { message } from './message.ts'
import { inParallel } from './parallel.ts'

export async function open(url: string): Promise<Contender> {
  const sender = createSender({ webhooks: [{ url }], sharedSecret: secret })
  const send = async (): Promise<void> => {
    const { ok, attempts } = await sender.send(message)
    if (!ok) throw new Error(`Not delivered: ${JSON.stringify(attempts)}`)
  }
  return { send: (times) => inParallel(times, send) }
}

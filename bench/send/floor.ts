/** The floor of a sender: `Pool.request`, and for every message JSON.stringify of what is composed already, and an HMAC. */

import { createSender } from 'hookline/sender'
import { Pool } from 'undici'
import type { Contender } from '../contenders.ts'
import { signBytes } from '../hmac.ts'
import { secret } from '../message.ts'
import { postOnce } from './bare.ts'
import { message } from './message.ts'
import { CONCURRENCY, inParallel } from './parallel.ts'

export async function open(url: string): Promise<Contender> {
  const { origin, pathname: path } = new URL(url)
  const { headers, body } = createSender({ webhooks: [{ url }], sharedSecret: secret }).request(message)
  const composed = JSON.parse(Buffer.from(body).toString())
  const { 'X-Signature': _, ...rest } = headers
  const fixed = Object.entries(rest).flat()
  const pool = new Pool(origin, { connections: CONCURRENCY })
  const post = (): Promise<void> => {
    const bytes = Buffer.from(JSON.stringify(composed))
    return postOnce(pool, path, [...fixed, 'X-Signature', signBytes(bytes)], bytes)
  }
  return { run: (messages) => inParallel(messages, post) }
}

/** The bare loop: a Pool of undici, bytes that are there already, answers dumped. */

import { createSender } from 'hookline/sender'
import { Pool } from 'undici'
import type { Contender } from '../contenders.ts'
import { secret } from '../message.ts'
import { message } from './message.ts'
import { CONCURRENCY, inParallel } from './parallel.ts'

/** Sends the very request that a sender makes of the message. */
export async function open(url: string): Promise<Contender> {
  const { origin, pathname: path } = new URL(url)
  const sender = createSender({ webhooks: [{ url }], sharedSecret: secret })
  const { headers, body } = sender.request(message)
  const [fixed, bytes] = [Object.entries(headers).flat(), Buffer.from(body)] // In turns: undici's cheapest form.
  const pool = new Pool(origin, { connections: CONCURRENCY })
  return { run: (messages) => inParallel(messages, () => postOnce(pool, path, fixed, bytes)) }
}

/** @throws Error when the answer is not 200. */
export async function postOnce(pool: Pool, path: string, headers: string[], body: Uint8Array): Promise<void> {
  const answer = await pool.request({ path, method: 'POST', headers, body })
  await answer.body.dump()
  if (answer.statusCode !== 200) throw new Error(`The endpoint answered ${answer.statusCode}.`)
}

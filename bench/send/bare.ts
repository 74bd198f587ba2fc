/** The bare loop: a Pool of undici, bytes that are there already, answers dumped. */

import { createSender } from 'hookline/sender'
import { Pool } from 'undici'
import { secret } from '../message.ts'
import type { Contender } from './contender.ts'
import { authorization, batchBody, message } from './message.ts'
import { CONCURRENCY, inParallel } from './parallel.ts'

/** @param what `message`, the very request that a sender makes of it; or `batch`. */
export async function open(url: string, what = 'message'): Promise<Contender> {
  const { origin, pathname: path } = new URL(url)
  const { headers, body } = what === 'batch' ? batchRequest() : messageRequest(url)
  const pool = new Pool(origin, { connections: CONCURRENCY })
  const post = async (): Promise<void> => {
    const answer = await pool.request({ path, method: 'POST', headers, body })
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`The endpoint answered ${answer.statusCode}.`)
  }
  return { send: (times) => inParallel(times, post) }
}

interface BareRequest {
  /** Names and values in turns: undici's cheapest form. */
  readonly headers: string[]
  readonly body: Uint8Array
}

function messageRequest(url: string): BareRequest {
  const sender = createSender({ webhooks: [{ url }], sharedSecret: secret })
  const { headers, body } = sender.request(message)
  return { headers: Object.entries(headers).flat(), body: Buffer.from(body) }
}

function batchRequest(): BareRequest {
  return { headers: ['content-type', 'application/json', 'authorization', authorization], body: batchBody() }
}

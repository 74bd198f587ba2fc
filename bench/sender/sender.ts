/** A message to one URL, 50 at a time: by a sender, and by the least that undici can do. */

import { createSender } from 'hookline/sender'
import { Pool } from 'undici'
import type { Contender } from '../contender.ts'
import { signBytes } from '../hmac.ts'
import { message, secret } from '../message.ts'
import { CONCURRENCY, inParallel } from '../parallel.ts'

/**
 * `bare`: a Pool of undici, bytes that are there already, answers dumped. `floor`: the same, but JSON.stringify of what is composed
 * already and an HMAC for every message.
 */
export type SenderKind = 'bare' | 'floor' | 'sender'

export async function openContender(url: string, kind: SenderKind): Promise<Contender> {
  const sender = createSender({ webhooks: [{ url }], sharedSecret: secret })
  if (kind === 'sender') {
    const send = async (): Promise<void> => {
      const { ok, attempts } = await sender.send(message)
      if (!ok) throw new Error(`Not delivered: ${JSON.stringify(attempts)}`)
    }
    return { run: (messages) => inParallel(messages, send) }
  }

  const { headers, body } = sender.request(message) // The very request that the sender makes of the message.
  const { 'X-Signature': signature = '', ...rest } = headers
  const fixed = Object.entries(rest).flat() // In turns: undici's cheapest form.
  const bytes = Buffer.from(body)
  const composed = JSON.parse(bytes.toString())
  const { origin, pathname: path } = new URL(url)
  const pool = new Pool(origin, { connections: CONCURRENCY })
  const signed = [...fixed, 'X-Signature', signature]

  async function post(headers: string[], body: Uint8Array): Promise<void> {
    const answer = await pool.request({ path, method: 'POST', headers, body })
    await answer.body.dump()
    if (answer.statusCode !== 200) throw new Error(`The endpoint answered ${answer.statusCode}.`)
  }
  function postComposed(): Promise<void> {
    const bytes = Buffer.from(JSON.stringify(composed))
    return post([...fixed, 'X-Signature', signBytes(bytes)], bytes)
  }
  return { run: (messages) => inParallel(messages, kind === 'bare' ? () => post(signed, bytes) : postComposed) }
}

/** Posts a body with undici, as the sender does, one connection a request. */

import { type Dispatcher, getGlobalDispatcher, request } from 'undici'
import { expect } from 'vitest'

interface PostOptions {
  readonly headers?: Record<string, string | string[]>
  readonly signal?: AbortSignal
  readonly dispatcher?: Dispatcher
}

export async function post(url: string, body = '{}', options: PostOptions = {}) {
  const { headers = {}, signal = null, dispatcher = getGlobalDispatcher() } = options
  const answer = await request(url, { method: 'POST', headers, body, signal, dispatcher, reset: true })
  return { status: answer.statusCode, headers: answer.headers, body: await answer.body.text() }
}

/** What a promise rejects with, which it must. */
export async function errorOf(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return promise.then(
    (value) => expect.fail(`It resolved to ${JSON.stringify(value)}.`),
    (error) => error,
  )
}

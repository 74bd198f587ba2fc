/** Wrong options and arguments: each is a TypeError that names it. */

import { expect } from 'vitest'

/** Expects the call to throw, or to reject with, a TypeError whose message has this text, and nothing that is secret. */
export async function expectRefusal(call: () => unknown, text: string, secret?: RegExp): Promise<void> {
  const taken = () => expect.fail('It was taken.')
  const refusal = await (async () => call())().then(taken, (error: unknown) => error)
  expect(refusal).toBeInstanceOf(TypeError)
  expect(String(refusal)).toContain(text)
  if (secret !== undefined) expect(String(refusal)).not.toMatch(secret)
}

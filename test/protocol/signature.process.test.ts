import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { sign } from '../../src/protocol/signature.ts'
import { needs } from '../support/needs.ts'

it.each(['a body', '', 'déjà vu 🎉'])('a signature agrees with openssl dgst on %j', needs('openssl'), (body) => {
  const printed = execFileSync('openssl', ['dgst', '-sha1', '-hmac', 'a shared secret'], { input: body })
  expect(printed.toString().trim().split(' ').at(-1)).toBe(sign(body, 'a shared secret'))
})

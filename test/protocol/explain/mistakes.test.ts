/** The signatures of receivers with one mistake: an explanation finds each of them. */

import { expect, it } from 'vitest'
import { explainSignature } from '../../../src/protocol/explain/explain-signature.ts'
import { MISTAKES } from '../../../src/protocol/explain/mistakes.ts'
import { sign } from '../../../src/protocol/signature.ts'

const SECRETS = ['a secret ', '"6162"', 'NAME=6162', '616263646566', 'Größe']
const BODIES = [
  ...['{"b":1.0,"a":"é/<","list":[]}\r\n', ' {"a":1} ', '[{"a":1},{"b":2}]', '"text"', '{\r\n"a":1}', '\ufeff{}'],
  ...['a=%7B%7D', '%7B%22a%22%3A1%7D', 'eyJhIjoxfQ==', 'CafÃ©'],
].map((text) => Buffer.from(text))
const NOT_UTF8 = Buffer.from('Café', 'latin1')

it('each signature of a mistake is explained, and each mistake by its name', () => {
  const pairs = SECRETS.flatMap((secret) => [...BODIES, NOT_UTF8].map((body) => ({ secret, body })))

  const named = new Set<string>()

  for (const mistake of MISTAKES) {
    pairs.some(({ secret, body }) => {
      const signature = mistake.sign(body, secret)
      if (signature === undefined || signature === sign(body, secret)) return false
      const { verdict, causes } = explainSignature(body, signature, secret)
      expect([mistake.code, verdict]).toEqual([mistake.code, 'explained'])
      for (const { code } of causes) named.add(code)
      return causes.some(({ code }) => code === mistake.code)
    })
  }

  expect(MISTAKES.filter(({ code }) => !named.has(code))).toEqual([])
})

/** What holds of `explainSignature` for any input: it names what it is shown, finds nothing by chance, and keeps secrets. */

import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { explainSignature } from '../../../src/protocol/explain/explain-signature.ts'
import { sign } from '../../../src/protocol/signature.ts'
import { runs } from '../../support/properties.ts'

const SECRET = 'a secret of the tests'

describe('what is not to be explained', () => {
  const digest = fc
    .constantFrom('md5', 'sha1', 'sha256')
    .chain((hash) => fc.uint8Array().map((bytes) => createHash(hash).update('x').update(bytes).digest('hex')))
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc.json().map(Buffer.from),
    fc.string({ unit: 'binary' }).map(Buffer.from),
  )

  it('has no cause but the length of the digest', () => {
    fc.assert(
      fc.property(body, digest, (bytes, signature) => {
        const { verdict, causes } = explainSignature(bytes, signature, SECRET)
        expect(verdict).toBe('unexplained')
        expect(causes.filter(({ code }) => !/^hash_|signature_cut/.test(code))).toEqual([])
      }),
      { numRuns: runs(30) },
    )
  })

  it('never throws, whatever the signature is', () => {
    fc.assert(
      fc.property(body, fc.oneof(fc.string(), fc.base64String(), fc.string({ unit: 'binary' })), (bytes, signature) => {
        const { verdict, causes } = explainSignature(bytes, signature, SECRET)
        const codes = causes.map(({ code }) => code)
        if (verdict === 'explained') expect(['signature_missing', 'signature_unreadable']).toContain(codes[0])
        else expect(verdict).toBe('unexplained')
      }),
      { numRuns: runs(60) },
    )
  })
})

describe('a secret', () => {
  const secret = fc.string({ minLength: 8, unit: 'grapheme' }).filter((text) => text.trim().length > 7)
  const signers = [
    (body: Buffer, key: string) => createHmac('sha1', `${key}\n`).update(body).digest('hex'),
    (body: Buffer, key: string) => createHmac('sha256', `"${key}"`).update(body).digest('base64'),
    (body: Buffer, key: string) => createHash('sha1').update(key).update(body).digest('hex'),
    (body: Buffer, _key: string) => createHash('sha1').update(body).update('another').digest('hex'),
    (_body: Buffer, key: string) => key,
  ]

  it('is in no result, nor is a digest that was not asked for', () => {
    fc.assert(
      fc.property(secret, fc.constantFrom(...signers), (key, signer) => {
        const body = Buffer.from('{"type":"track"}')
        const printed = JSON.stringify(explainSignature(body, signer(body, key), key))
        for (const form of [key, JSON.stringify(key).slice(1, -1), Buffer.from(key).toString('hex'), sign(body, key)]) {
          expect(printed).not.toContain(form)
        }
        expect(printed).not.toMatch(/[0-9a-f]{16}/)
      }),
      { numRuns: runs(30) },
    )
  })

  it('is in no error', () => {
    const key = 'a-secret-value'
    // @ts-expect-error
    for (const call of [() => explainSignature('text', key, key), () => explainSignature(Buffer.of(), key, key, key)]) {
      expect(call).toThrow(expect.objectContaining({ message: expect.not.stringContaining(key) }))
    }
  })
})

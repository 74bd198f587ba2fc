import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createKey, createKeys, sign, verify } from '../../src/protocol/signature.ts'
import { runs } from '../support/properties.ts'

const bytes = (length: number, value: number): Buffer => Buffer.alloc(length, value)

it('a signature equals createHmac for any key and body', () => {
  const secrets = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.uint8Array({ minLength: 63, maxLength: 65 })) // About a block.
  const lengths = fc.oneof(fc.nat(200), fc.nat(2_000), fc.integer({ min: 16_300, max: 16_500 }))
  fc.assert(
    fc.property(secrets, lengths, fc.nat(255), (secret, length, byte) => {
      const body = bytes(length, byte)
      const digest = createHmac('sha1', secret).update(body).digest('hex')
      expect(createKey(secret).sign(body)).toBe(digest)
      expect(createKey(secret).matches(body, digest)).toBe(true)
      expect(createKey(secret).matches(bytes(length + 1, byte), digest)).toBe(false)
    }),
    { numRuns: runs(200) },
  )
})

const body = Buffer.from('a body')
const signature = sign(body, 'secret')

describe('verify', () => {
  it('is false for any flipped bit of the body', () => {
    for (let bit = 0; bit < 8 * body.length; bit += 1) {
      const changed = body.map((byte, place) => (place === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte))
      expect(verify(changed, signature, 'secret')).toBe(false)
    }
  })

  it('is false for any other digit of the signature', () => {
    for (const [place, digit] of [...signature].entries()) {
      const changed = signature.slice(0, place) + (digit === '0' ? '1' : '0') + signature.slice(place + 1)
      expect(verify(body, changed, 'secret')).toBe(false)
    }
  })

  it.each([
    ['missing', undefined],
    ['empty', ''],
    ['in capitals', signature.toUpperCase()],
    ['too short', signature.slice(1)],
    ['followed by junk', `${signature}zz`],
    ['followed by a line feed', `${signature}\n`],
    ['of letters that take two bytes', 'é'.repeat(40)],
  ])('is false for a signature that is %s', (_what, given) => {
    expect(verify(body, given, 'secret')).toBe(false)
  })

  it('accepts any of several secrets', () => {
    expect(verify(body, signature, ['new', 'secret'])).toBe(true)
    expect(verify(body, signature, ['new', 'newer'])).toBe(false)
  })
})

describe('secrets', () => {
  it.each(['', [], [''], ['good', ''], undefined, 5])('refuses %j', (secret) => {
    expect(() => createKeys(secret as never)).toThrow(TypeError)
    expect(() => createKeys(secret as never)).toThrow('secret')
  })

  it('refuses to sign with an empty secret, and what is not bytes', () => {
    expect(() => sign('body', '')).toThrow(TypeError)
    expect(() => sign({ type: 'track' } as never, 'secret')).toThrow('sign: body must be')
    expect(() => verify('text' as never, signature, 'secret')).toThrow('verify: body must be')
  })
})

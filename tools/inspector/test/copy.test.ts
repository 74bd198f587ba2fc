/** What the page copies, read as it is: quotes, and what is left out. */

import fc from 'fast-check'
import { expect, it } from 'vitest'
import { copyAsCurl, copyAsTest, quoteForScript } from '../src/page/copy.ts'
import type { Detail } from '../src/wire.ts'
import { bodyOf, detailOf, NASTY } from './copied.ts'

const body = bodyOf(Buffer.from('{}'))

it('a command types nothing that a terminal acts on', () => {
  for (const text of NASTY) {
    const command = copyAsCurl(detailOf(bodyOf(Buffer.from(text)), [['x-a', text]])) as string

    expect(command.match(/\p{Cc}/gu)?.filter((found) => found !== '\n') ?? []).toEqual([])
  }
})

it('a command does not post to what is no host, and leaves the hidden query of a URL out', () => {
  const request = { method: 'POST', path: '/a', headers: [['host', 'x.example/?'] as const] }
  const attempt = { url: 'https://shop.example/a?…', at: 0, durationMs: 1, ok: true, body: '' }
  const sent: Detail = { ...detailOf(body), steps: [{ at: 0, what: 'attempt', attempt }] }

  expect(copyAsCurl({ body, request, steps: [] })).toContain("'http://localhost:3000/a'")
  expect(copyAsCurl({ ...sent, request: undefined } as never)).toContain("'https://shop.example/a'")
})

it('no copy is offered of a body that was not kept, nor a test of bytes that are no text', () => {
  expect(copyAsCurl(detailOf({ size: 9 }))).toBeUndefined()
  expect(copyAsTest(detailOf({ size: 9 }))).toBeUndefined()
  expect(copyAsTest(detailOf({ size: 1, base64: '/w==' }))).toBeUndefined()
})

it('quotes hold any text for JavaScript, seen as it is', () => {
  const unit = fc.oneof(fc.constantFrom(...NASTY, '\ud800', "\\'", '"', '`', '${'), fc.string({ maxLength: 20 }))
  const check = fc.property(fc.string({ unit, maxLength: 50 }), (text) => {
    const quoted = quoteForScript(text)

    expect(new Function(`return ${quoted}`)()).toBe(text)
    expect(quoted).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
  })
  fc.assert(check)
})

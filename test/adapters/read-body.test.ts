import { once } from 'node:events'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import getRawBody, { type RawBodyError } from 'raw-body'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { readArrived, readStream } from '../../adapters/shared/read-body.ts'
import type { HooklineError } from '../../src/message/error.ts'
import { DISCARD_LIMIT } from '../../src/message/limits.ts'

afterEach(() => void vi.useRealTimers())

it('discards no more than its limit of a body that never ends, however fast that comes', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }) // No time passes: only the number of bytes can end it.
  let given = 0
  const endless = new Readable({
    read() {
      if (given > 2 * DISCARD_LIMIT) return // Past the limit nothing comes, so that a reader without one never ends.
      given += 64 * 1024
      this.push(Buffer.alloc(64 * 1024))
    },
  })
  await expect(readStream(endless, 1000, undefined)).rejects.toMatchObject({ code: 'body_too_large' })
})

describe('a body that has arrived', () => {
  const streamOfText = (text: string): Readable => {
    const stream = new Readable({ read() {} })
    for (const letter of text) stream.push(letter)
    return stream
  }

  it('is read at once, and the stream ends', async () => {
    const stream = streamOfText('body')
    stream.push(null)
    const body = readArrived(stream, 4, '4')
    expect(body).toEqual({ bytes: Buffer.from('body'), source: 'stream' })
    await once(stream, 'end')
  })

  it.each([
    ['in part', 4, '5', () => streamOfText('body')],
    ['without a length', 4, undefined, () => streamOfText('body')],
    ['with more than its length', 4, '3', () => streamOfText('body')],
    ['over the limit', 3, '4', () => streamOfText('body')],
    ['as text', 4, '4', () => streamOfText('body').setEncoding('latin1')],
    ['in a stream that flows', 4, '4', () => streamOfText('body').resume()],
    ['empty', 4, '0', () => streamOfText('')],
  ])('is left alone %s', (_how, limit, length, open) => {
    const stream = open()
    const before = stream.readableLength
    expect(readArrived(stream, limit, length)).toBeUndefined()
    expect(stream.readableLength).toBe(before)
    expect(stream.readableDidRead).toBe(false)
  })
})

/** The errors of raw-body by their code here. */
const CODES: Readonly<Record<string, string>> = {
  'entity.too.large': 'body_too_large',
  'request.aborted': 'body_aborted',
  'request.size.invalid': 'body_aborted',
}

it('reads any stream as raw-body does', async () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 20 }), { maxLength: 6 })
  const limit = fc.integer({ min: 0, max: 60 })
  const missing = fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined })
  const ending = fc.constantFrom('end', 'destroy', 'error')
  await fc.assert(
    fc.asyncProperty(chunks, limit, missing, ending, async (parts, most, less, end) => {
      const size = parts.reduce((sum, part) => sum + part.length, 0)
      const length = less === undefined ? undefined : String(size + less)
      const ours = await readStream(streamOf(parts, end), most, length).then(
        ({ bytes }) => Buffer.from(bytes).toString('hex'),
        ({ code }: HooklineError) => code,
      )
      const theirs = await getRawBody(streamOf(parts, end), { limit: most, length: length ?? null }).then(
        (bytes) => bytes.toString('hex'),
        ({ type }: RawBodyError) => CODES[type ?? ''] ?? 'body_aborted',
      )
      expect(ours).toBe(theirs)
    }),
    { numRuns: 500 },
  )
})

function streamOf(parts: readonly Uint8Array[], ending: string): Readable {
  const rest = [...parts]
  const stream = new Readable({
    read() {
      const part = rest.shift()
      if (part !== undefined) this.push(part)
      else if (ending === 'end') this.push(null)
      else this.destroy(ending === 'error' ? new Error('reset') : undefined)
    },
  })
  return stream.on('error', () => {}) // raw-body stops listening when it has refused a body.
}

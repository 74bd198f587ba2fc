import { once } from 'node:events'
import { PassThrough, Readable } from 'node:stream'
import fc from 'fast-check'
import { afterEach, expect, it, vi } from 'vitest'
import { type Reading, readStream } from '../../src/host/read-stream.ts'
import type { HooklineError } from '../../src/protocol/error.ts'
import { DISCARD_LIMIT, DISCARD_MS } from '../../src/protocol/limits.ts'
import { runs } from '../support/properties.ts'
import { until } from '../support/until.ts'

afterEach(() => void vi.useRealTimers())

const LIMIT = 1_000
const codeOf = (reading: Promise<unknown>): Promise<string> => reading.then(String, ({ code }: HooklineError) => code)

it('reads a body as it is sent, and refuses what is too long, cut off or of another length', async () => {
  const chunks = fc.array(fc.uint8Array({ minLength: 1, maxLength: 20 }), { maxLength: 6 })
  const limit = fc.integer({ min: 0, max: 60 })
  const more = fc.option(fc.integer({ min: -20, max: 20 }), { nil: undefined })
  const ending = fc.constantFrom('end', 'destroy', 'error')
  await fc.assert(
    fc.asyncProperty(chunks, limit, more, ending, async (parts, most, difference, end) => {
      const body = Buffer.concat(parts)
      const length = difference === undefined ? body.length : Math.max(0, body.length + difference)
      const stream = streamOf(parts, end)
      const read = await readStream(stream, most, difference === undefined ? undefined : `${length}`).then(
        ({ bytes, source }) => `${source} ${Buffer.from(bytes).toString('hex')}`,
        ({ code }: HooklineError) => code,
      )
      const isCutOff = end !== 'end' || length !== body.length
      const isTooLarge = length > most || (body.length > most && !isTooLong(parts, most, length))
      const expected = isTooLarge ? 'body_too_large' : isCutOff ? 'body_aborted' : `stream ${body.toString('hex')}`
      expect(read).toBe(expected)
      expect(stream.eventNames()).toEqual(['error'])
    }),
    { numRuns: runs(500) },
  )
})

it.each([0, LIMIT])('holds nothing of a body of 10 bytes once it is read, with a limit of %s', async (limit) => {
  const reading: Reading = { stopReading: undefined }
  const read = readStream(Readable.from([Buffer.alloc(10)]), limit, undefined, reading)
  expect(reading.stopReading).toBeTypeOf('function')
  await read.catch(() => {})
  expect(reading.stopReading).toBeUndefined()
})

/** Whether more arrives than was announced before more arrives than is allowed. */
function isTooLong(parts: readonly Uint8Array[], limit: number, length: number): boolean {
  let size = 0
  for (const part of parts) {
    size += part.length
    if (size > limit) return false
    if (size > length) return true
  }
  return false
}

function streamOf(parts: readonly Uint8Array[], ending: string): Readable {
  const rest = [...parts]
  return new Readable({
    read() {
      const part = rest.shift()
      if (part !== undefined) this.push(part)
      else if (ending === 'end') this.push(null)
      else this.destroy(ending === 'error' ? new Error('reset') : undefined)
    },
  })
}

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
  expect(await codeOf(readStream(endless, LIMIT, undefined))).toBe('body_too_large')
})

it.each([
  ['the sender has written all of it', (stream: PassThrough) => stream.end()],
  ['the sender was given a moment', () => vi.advanceTimersByTime(DISCARD_MS)],
])('refuses a body over the limit when %s', async (_when, finish) => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const stream = new PassThrough()
  const refused = vi.fn()
  const read = codeOf(readStream(stream, LIMIT, undefined)).finally(refused)
  stream.write(Buffer.alloc(LIMIT + 1))
  await until(() => stream.listenerCount('data') === 1 || refused.mock.calls.length > 0)
  expect(refused).not.toHaveBeenCalled()
  finish(stream)
  expect(await read).toBe('body_too_large')
  expect(stream.listenerCount('data')).toBe(0)
})

it('reads a stream that was paused', async () => {
  const stream = new PassThrough().pause()
  const reading = readStream(stream, LIMIT, undefined)
  stream.end('body')
  expect((await reading).bytes.toString()).toBe('body')
})

it('refuses a stream that was destroyed, and one with an encoding, whose rest is dropped', async () => {
  expect(await codeOf(readStream(new PassThrough().destroy(), LIMIT, undefined))).toBe('body_aborted')
  const text = new PassThrough({ highWaterMark: 4 }).setEncoding('utf8')
  expect(await codeOf(readStream(text, LIMIT, undefined))).toBe('body_consumed')
  text.end('longer than what fits')
  await once(text, 'end')
})

it('refuses what HTTP/2 ends as if it were complete when its client cancels it', async () => {
  const stream = Object.assign(new PassThrough(), { aborted: false })
  const reading = readStream(stream, LIMIT, undefined)
  stream.aborted = true
  stream.end('half a bo')
  expect(await codeOf(reading)).toBe('body_aborted')
})

it('may fail when it has been read', async () => {
  for (const [limit, code] of [
    [4, '[object Object]'],
    [3, 'body_too_large'],
  ] as const) {
    const stream = new Readable({ read() {}, autoDestroy: false })
    const reading = readStream(stream, limit, undefined)
    stream.push('body')
    stream.push(null)
    expect(await codeOf(reading)).toBe(code)
    stream.destroy(new Error('reset'))
    await new Promise((resolve) => stream.on('close', resolve)) // Not `once` of node:events, which listens to errors.
  }
})

it('a reading that is stopped rejects, keeps no listener, and drops what still comes, which others go on to read', async () => {
  const stream = new PassThrough()
  const [seen, closed] = [vi.fn(), vi.fn()]
  stream.on('data', seen).on('close', closed)
  const reading: Reading = { stopReading: undefined }
  const read = codeOf(readStream(stream, LIMIT, undefined, reading))
  stream.write('half ')
  await until(() => seen.mock.calls.length === 1)
  reading.stopReading?.()
  expect(await read).toBe('body_aborted')
  expect(closed).not.toHaveBeenCalled()
  expect(stream.listenerCount('data')).toBe(1)
  stream.end('a body')
  await once(stream, 'end')
  expect(seen.mock.calls.join('')).toBe('half a body')
})

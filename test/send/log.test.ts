/** What a destination prints, its alarm for dead letters, and its health. */

import { describe, expect, it, vi } from 'vitest'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { DestinationDeadLetter } from '../../src/send/destination-types.ts'
import type { Script } from '../../src/testing.ts'
import { watchConsole } from '../support/console.ts'
import { keepLines } from '../support/logger.ts'
import { watchWarnings } from '../support/receive.ts'
import { HOUR, setUp as setUpDestination } from './set-up.ts'

/** A destination without `onAttempt`, and what it prints. */
function setUp(script: Script, options: Partial<DestinationOptions> = {}) {
  const printed = watchConsole()
  const webhooks = [{ url: 'https://shop.example/hooks?token=t0ken' }]
  const quiet = { webhooks, sharedSecret: 's3cret', onAttempt: undefined, ...options } as Partial<DestinationOptions>
  return { ...setUpDestination(script, quiet), printed }
}

const call = { userId: 'u5er', event: 'E', properties: { a: 'b0dy' } }

it('by default a destination prints a line for each failed round and each dead letter, without body, secret or query', async () => {
  const { clock, printed, destination } = setUp(['hang', { status: 400, body: 'b0dy' }])
  const { id } = (await destination.track(call)) as { id: string }

  await clock.advance(HOUR)

  const post = 'POST https://shop\\.example/hooks\\?…: '
  const attempt = `^hookline: attempt_failed: .*${id}.*2026-01-15T09:30:10\\.000Z.*${post}timeout`
  const dead = `^hookline: dead letter ${id}: refused.* 2\\..*redrive\\(\\['${id}'\\]\\).*${post}status 400`
  expect(printed).toEqual([
    { level: 'warn', text: expect.stringMatching(attempt) },
    { level: 'error', text: expect.stringMatching(dead) },
  ])
  expect(JSON.stringify(printed)).not.toMatch(/t0ken|s3cret|b0dy|u5er/)
  expect(await destination.redrive([id])).toBe(1)
})

it('nothing is printed beside a logger, which gets the fields, and beside `onAttempt`', async () => {
  const onAttempt = vi.fn()
  const { fields, logger } = keepLines()
  const { clock, printed, destination } = setUp([500, 400], { onAttempt, logger })

  const { id } = (await destination.track(call)) as { id: string }

  await clock.advance(HOUR)

  expect(fields()).toEqual([
    { code: 'attempt_failed', id, retryAt: '2026-01-15T09:30:05.000Z' },
    { code: 'dead_letter', id, reason: 'refused', attempts: 2 },
  ])
  expect([onAttempt.mock.calls.length, printed]).toEqual([2, []])
})

it('close() says how many lines were left out', async () => {
  const { fields, logger } = keepLines()
  const { clock, destination } = setUp([500], { logger })
  for (let i = 0; i < 9; i++) await destination.track(call)
  await clock.advance(0)
  await destination.close()
  expect(fields()[5]).toEqual({ code: 'attempt_failed', more: 4 })
})

describe('onDeadLetter', () => {
  it('is called with each message when it becomes a dead letter, and is not awaited', async () => {
    const letters: DestinationDeadLetter[] = []
    const onDeadLetter = (letter: DestinationDeadLetter) => {
      letters.push(letter)
      return new Promise(() => {})
    }
    const { clock, destination } = setUp([500, 400], { onDeadLetter })

    await destination.track(call)
    await clock.advance(0)
    expect(letters).toEqual([])

    await clock.advance(HOUR)
    expect(letters).toMatchObject([{ message: call, reason: 'refused', attempts: [{ status: 500 }, { status: 400 }] }])
    expect(letters).toEqual(await destination.deadLetters())
  })

  it('that fails is a warning, and the message a dead letter', async () => {
    const warnings = watchWarnings()
    const { clock, destination } = setUp([400], { onDeadLetter: () => Promise.reject(new Error('mine')) })
    await destination.track(call)
    await clock.advance(0)
    expect(await destination.deadLetters()).toHaveLength(1)
    const warning = { code: 'HOOKLINE_ON_DEAD_LETTER', detail: 'mine' }
    expect(warnings).toHaveBeenCalledExactlyOnceWith(expect.any(String), warning)
  })
})

it('health() counts the messages of the queue, of which dead ones change no status, and the attempts of each URL', async () => {
  const { clock, destination } = setUp([404, 500, 'hang'], { concurrency: 1 })
  for (let i = 0; i < 2; i++) await destination.track(call)
  await clock.advance(0)
  for (let i = 0; i < 2; i++) await destination.track(call)
  await clock.advance(1_000)

  const url = { url: 'https://shop.example/hooks?…', circuit: 'closed', delivered: 0, failed: 2 }
  const counts = { waiting: 2, active: 1, deadLetters: 1, oldestDueAgeMs: 1_000, retrying: 1 }
  expect(await destination.health()).toEqual({
    ...{ ready: true, status: 'ok', ...counts, asOf: new Date(clock.now()) },
    urls: [{ ...url, lastFailure: { at: expect.any(Date), status: 500 } }],
    skipped: { switched_off: 0, not_selected: 0, historical: 0, filtered: 0 },
    transformFailed: 0,
  })

  await destination.close({ graceMs: 0 }) // It ends an attempt, which is no failure.
  expect(await destination.health()).toMatchObject({ ready: false, status: 'closing', waiting: 0, urls: [url] })
})

const [up, down] = ['https://up.example/', 'https://down.example/hooks?…']
const webhooks = [{ url: up }, { url: 'https://down.example/hooks?token=t0ken' }]

it('of several URLs one fails: one warning says so until it accepts again', async () => {
  let answer = 500
  const { fields, lines, texts, logger } = keepLines()
  const options = { webhooks, logger, circuit: { failures: 2, maxProbeMs: 1_000 } }
  const { clock, destination } = setUp([({ url }) => (url.includes('down') ? answer : 200)], options)
  const coded = (code: string) =>
    fields()
      .filter((each) => each.code === code)
      .map(({ url }) => url)
  const sendTwo = async (status: number) => {
    answer = status
    for (let i = 0; i < 2; i++) {
      await destination.track(call)
      await clock.advance(60_000)
    }
    return [coded('url_failed'), coded('circuit_open'), coded('circuit_closed')]
  }

  expect(await sendTwo(500)).toEqual([[down], [down], []])
  const opened = { code: 'circuit_open', url: down, probeAt: '2026-01-15T09:31:00.750Z' }
  expect(lines.map(([level, line]) => [level, line])).toContainEqual(['warn', opened])
  expect(await sendTwo(200)).toEqual([[down], [down], [down]])
  expect(await sendTwo(500)).toMatchObject([[down, down], {}, {}])

  expect(texts().join()).not.toContain('t0ken')
})

it('of several URLs one hangs until close(): this is no fault of it', async () => {
  const { fields, logger } = keepLines()
  const { clock, destination } = setUp([({ url }) => (url.includes('down') ? 'hang' : 200)], { webhooks, logger })
  await destination.track(call)
  await clock.advance(0)
  await destination.close({ graceMs: 0 })
  expect(fields()).toEqual([])
})

/** What a destination prints, its alarm for dead letters, and its health. */

import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { DestinationDeadLetter } from '../../src/send/destination-types.ts'
import { capture, manualClock, type Script } from '../../src/testing.ts'
import { watchConsole } from '../support/console.ts'

const HOUR = 3_600_000

function setUp(script: Script, options: Partial<DestinationOptions> = {}) {
  const clock = manualClock()
  const printed = watchConsole()
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/hooks?token=t0ken' }],
    sharedSecret: 's3cret',
    dispatcher: capture({ script }).dispatcher,
    queue: memoryQueue({ clock }),
    clock,
    random: () => 0.5,
    ...options,
  })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  return { clock, printed, destination, lines: () => printed.map(({ text }) => text) }
}

const call = { userId: 'u5er', event: 'E', properties: { a: 'b0dy' } }

describe('by default a destination prints', () => {
  it('a line for each failed round and one for a dead letter, without a body, a secret or the query of a URL', async () => {
    const { clock, printed, lines, destination } = setUp(['hang', { status: 400, body: 'b0dy' }])
    const queued = await destination.track(call)
    await clock.advance(HOUR)
    const id = 'id' in queued && queued.id
    const post = 'POST https://shop.example/hooks?…:'
    const attempt = `hookline: attempt_failed: message ${id}. The next attempt follows at 2026-01-15T09:30:10.000Z. ${post} timeout (`
    const dead = `hookline: dead letter ${id}: refused, because every URL gave a final response. Attempts: 2. `
    const advice = `Fix the cause, then call destination.redrive(['${id}']). ${post} status 400 after 0 ms`
    expect(lines()).toEqual([expect.stringContaining(attempt), dead + advice])
    expect(printed.map(({ level }) => level)).toEqual(['warn', 'error'])
    expect(lines().join()).not.toMatch(/t0ken|s3cret|b0dy|u5er/)
    expect(await destination.redrive([String(id)])).toBe(1)
  })

  it('what it left out in the last minute when it closes', async () => {
    const { clock, lines, destination } = setUp([400])
    for (let index = 0; index < 7; index++) await destination.track(call)
    await clock.advance(0)
    await destination.close()
    expect(lines().at(-1)).toBe('hookline: 2 more dead_letter in the last minute.')
  })
})

describe('nothing is printed', () => {
  it('beside `onAttempt`', async () => {
    const onAttempt = vi.fn()
    const { clock, printed, destination } = setUp([400], { onAttempt })
    await destination.track(call)
    await clock.advance(0)
    expect([onAttempt.mock.calls.length, printed]).toEqual([1, []])
  })

  it('beside a logger, which gets the fields; both may be given', async () => {
    const onAttempt = vi.fn()
    const logged: unknown[] = []
    const keep = (...one: unknown[]) => void logged.push(one)
    const logger = { error: keep, warn: keep, info: keep }
    const { clock, printed, destination } = setUp([500, 400], { onAttempt, logger })
    await destination.track(call)
    await clock.advance(HOUR)
    const id = expect.any(String)
    expect(logged).toEqual([
      [{ code: 'attempt_failed', id, retryAt: '2026-01-15T09:30:05.000Z' }, expect.stringMatching(/^attempt_failed: /)],
      [{ code: 'dead_letter', id, reason: 'refused', attempts: 2 }, expect.stringMatching(/^dead letter /)],
    ])
    expect([onAttempt.mock.calls.length, printed]).toEqual([2, []])
  })
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
    const emit = vi.spyOn(process, 'emitWarning').mockReturnValue()
    onTestFinished(() => emit.mockRestore())
    const { clock, destination } = setUp([400], { onDeadLetter: () => Promise.reject(new Error('mine')) })
    await destination.track(call)
    await clock.advance(0)
    expect(await destination.deadLetters()).toHaveLength(1)
    const warning = { code: 'HOOKLINE_ON_DEAD_LETTER', detail: 'mine' }
    expect(emit).toHaveBeenCalledExactlyOnceWith('onDeadLetter failed', warning)
  })
})

it.each([
  ['onDeadLetter', { onDeadLetter: 'page me' }],
  ['onAttempt', { onAttempt: 'log' }],
  ['logger.error', { logger: {} }],
])('createDestination refuses a wrong %s', (option, options) => {
  const create = () => createDestination({ webhooks: [{ url: 'https://a.example/' }], ...(options as object) })
  expect(create).toThrow(TypeError)
  expect(create).toThrow(`\`${option}\` must be a function.`)
})

describe('its health', () => {
  it('counts dead letters, which change no status', async () => {
    const { clock, destination } = setUp([400, 200])
    await destination.track(call)
    await clock.advance(0)
    expect(await destination.health()).toMatchObject({ ready: true, status: 'ok', deadLetters: 1 })
    await destination.redrive('all')
    await clock.advance(0)
    expect(await destination.health()).toMatchObject({ ready: true, status: 'ok', deadLetters: 0 })
    await destination.close()
    expect(await destination.health()).toMatchObject({ ready: false, status: 'closing' })
  })

  it('is not ready while its queue is full', async () => {
    const { clock, destination } = setUp([503], { queue: memoryQueue({ maxJobs: 1, clock: manualClock() }) })
    await destination.track(call)
    await expect(destination.track(call)).rejects.toMatchObject({ code: 'queue_full' })
    expect(await destination.health()).toMatchObject({ ready: false, status: 'degraded', reason: expect.any(String) })
    await clock.advance(0)
  })
})

describe('of several URLs, of which one fails', () => {
  const [up, down] = ['https://up.example/', 'https://down.example/hooks?…']
  const world = { answer: 500 }
  const setUpTwo = (options: Partial<DestinationOptions> = {}) => {
    world.answer = 500
    return setUp([({ url }) => (url.includes('down') ? world.answer : 200)], {
      webhooks: [{ url: up }, { url: 'https://down.example/hooks?token=t0ken' }],
      ...options,
    })
  }
  const coded = (logged: readonly { code: string; url?: string }[], code: string) =>
    logged.filter((each) => each.code === code).map(({ url }) => url)

  it('health() says how many each got, and how the last attempt failed', async () => {
    const { clock, destination } = setUpTwo()
    for (let i = 0; i < 40; i++) {
      await destination.track(call)
      await clock.advance(0)
    }
    const { urls } = await destination.health()
    const lastFailure = { at: expect.any(Date), status: 500 }
    expect(urls).toEqual([
      { url: up, circuit: 'closed', delivered: 40, failed: 0 },
      expect.objectContaining({ url: down, circuit: 'open', delivered: 0, failed: 10, lastFailure }),
    ])
    expect(JSON.stringify(urls)).not.toContain('t0ken')
  })

  it('one warning says so until it accepts again, and no line claims that it gets what the other accepted', async () => {
    const logged: { code: string; url?: string }[] = []
    const texts: string[] = []
    const keep = (fields: object, text: string) => {
      logged.push(fields as { code: string })
      texts.push(text)
    }
    const logger = { error: keep, warn: keep, info: keep }
    const { clock, destination } = setUpTwo({ logger, circuit: { failures: 2, maxProbeMs: 1_000 } })
    const sendTwo = async () => {
      for (let i = 0; i < 2; i++) {
        await destination.track(call)
        await clock.advance(60_000)
      }
    }
    await sendTwo()
    expect([coded(logged, 'url_failed'), coded(logged, 'circuit_open')]).toEqual([[down], [down]])
    world.answer = 200
    await sendTwo()
    expect([coded(logged, 'url_failed'), coded(logged, 'circuit_closed')]).toEqual([[down], [down]])
    world.answer = 500
    await sendTwo()
    expect(coded(logged, 'url_failed')).toEqual([down, down])
    expect(texts.join()).not.toMatch(/Nothing is lost|others follow|were held are sent|t0ken/)
  })

  it('an attempt that close() ends is none of its failures', async () => {
    const { clock, destination } = setUp(['hang'])
    await destination.track(call)
    await clock.advance(0)
    await destination.close({ graceMs: 0 })
    expect((await destination.health()).urls).toMatchObject([{ delivered: 0, failed: 0 }])
  })
})

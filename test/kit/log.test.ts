import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/kit/clock.ts'
import { createLog, type Line } from '../../src/kit/log.ts'
import { HooklineError } from '../../src/protocol/error.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { watchConsole } from '../support/console.ts'
import { keepLines } from '../support/logger.ts'
import { watchWarnings } from '../support/receive.ts'
import { expectRefusal } from '../support/refusal.ts'
import { throwing } from '../support/throwing.ts'

const line = (code: string, text: string, more: Partial<Line> = {}): Line => ({ level: 'warn', code, text, ...more })

function setUp() {
  const clock = manualClock()
  const { logger, lines, fields, texts } = keepLines()
  const stack = () =>
    fields()
      .map((each) => each.stack)
      .join()
  return { clock, lines, texts, stack, log: createLog(logger, undefined, clock) }
}

describe('a line is written', () => {
  it('to the console, with its level, by default', () => {
    const printed = watchConsole()
    const log = createLog(undefined, undefined, manualClock())
    log.write(line('a', 'a: first'))
    log.write(line('b', 'b: second', { level: 'error', thrown: new Error('why') }))
    expect(printed.map(({ level }) => level)).toEqual(['warn', 'error'])
    expect(printed[0]?.text).toBe('hookline: a: first')
    expect(printed[1]?.text).toMatch(/^hookline: b: second\n {4}Error: why\n {8}at /)
  })

  it('to a logger, with its fields, its stack and without the prefix', () => {
    const printed = watchConsole()
    const { log, lines } = setUp()
    log.write(line('a', 'a: first', { fields: { deliveryId: 'd' } }))
    log.write(line('b', 'b: second', { level: 'error', thrown: new Error('why') }))
    expect(lines).toEqual([
      ['warn', { code: 'a', deliveryId: 'd' }, 'a: first'],
      ['error', { code: 'b', stack: expect.stringMatching(/^Error: why\n/) }, 'b: second'],
    ])
    expect(printed).toEqual([])
  })

  it('not beside a callback', () => {
    const printed = watchConsole()
    createLog(undefined, () => {}, manualClock()).write(line('a', 'silent'))
    createLog(console, () => {}, manualClock()).write(line('a', 'printed'))
    expect(printed).toEqual([{ level: 'warn', text: 'hookline: printed' }])
  })

  const fail = throwing('full')
  it.each([
    ['throws', fail],
    ['rejects', async () => fail()],
  ])('and a logger that %s is a warning of the process', async (_how, warn) => {
    const emit = watchWarnings()
    createLog({ error: warn, warn, info: warn }, undefined, manualClock()).write(line('a', 'first'))
    await Promise.resolve()
    expect(emit).toHaveBeenCalledExactlyOnceWith('logger failed', { code: 'HOOKLINE_LOGGER', detail: 'full' })
  })

  it.each([
    [null, 'logger.error'],
    [{ error() {}, warn: 5 }, 'logger.warn'],
    [{ error() {}, warn() {} }, 'logger.info'],
  ])('and a logger that is none is refused: %j', async (logger, option) => {
    await expectRefusal(() => createLog(logger as never, undefined, manualClock()), `\`${option}\``)
  })
})

describe('lines are bounded', () => {
  it('to five of a code in a minute, and then how many more there were', async () => {
    const { clock, log, texts } = setUp()
    for (let index = 1; index <= 8; index++) log.write(line('a', `text ${index}`))
    log.write(line('b', 'other'))
    await clock.advance(59_999)
    expect(texts()).toEqual(['text 1', 'text 2', 'text 3', 'text 4', 'text 5', 'other'])
    await clock.advance(1)
    expect(texts().slice(6)).toEqual(['3 more a lines in the last minute.'])
    log.write(line('a', 'text 1'))
    expect(texts().slice(7)).toEqual(['text 1'])
  })

  it('to one of the same text, and counts what each stands for', async () => {
    const { clock, log, lines } = setUp()
    log.write(line('a', 'same', { level: 'error' }))
    log.write(line('a', 'same', { level: 'error' }))
    log.write(line('a', 'same', { level: 'error', count: 20 }))
    await clock.advance(60_000)
    expect(lines).toEqual([
      ['error', { code: 'a' }, 'same'],
      ['error', { code: 'a', more: 21 }, '21 more a lines in the last minute.'],
    ])
  })

  it('and how many more there were is told once, when it was told before the minute ended', async () => {
    const { clock, log, texts } = setUp()
    for (let index = 1; index <= 8; index++) log.write(line('a', `text ${index}`))
    log.flush()
    await clock.advance(60_000)
    expect(texts().slice(5)).toEqual(['3 more a lines in the last minute.'])
  })

  it('by a timer that lets the process end', () => {
    const unref = vi.fn()
    const { logger } = keepLines()
    createLog(logger, undefined, { ...systemClock, setTimeout: () => ({ unref }) }).write(line('a', 'first'))
    expect(unref).toHaveBeenCalledOnce()
  })
})

describe('what a line shows', () => {
  const ours = new HooklineError('queue_full', 'Full. Got one. Wait.', { cause: new Error('why') })
  it('is at most 1 000 characters of a text, and 4 000 of a stack', () => {
    const { log, texts, stack } = setUp()
    log.write(line('a', 'x'.repeat(1_001), { thrown: new Error('x'.repeat(10_000)) }))
    expect(texts()).toEqual(['x'.repeat(1_000)])
    expect(stack()).toHaveLength(4_000)
  })

  it('ten errors of an AggregateError, three causes deep, also where they are a circle', () => {
    const [many, round] = [setUp(), setUp()]
    const errors = Array.from({ length: 1_000 }, (_, index) => `error ${index}`)
    many.log.write(line('a', 'first', { thrown: new AggregateError(errors, 'all') }))
    const error = Object.assign(new Error('round'), { stack: 'Error: round' })
    error.cause = error
    round.log.write(line('a', 'first', { thrown: error }))
    expect(many.stack().split('\n')).toEqual(errors.slice(0, 10))
    expect(round.stack()).toBe(Array(4).fill('Error: round').join('\n'))
  })

  it('is printable for any text and any thrown message, and forges no other line', () => {
    const printed = watchConsole()
    const any = fc.array(fc.nat(0x2fff), { maxLength: 200 }).map((codes) => String.fromCharCode(...codes))
    fc.assert(
      fc.property(any, any, (text, message) => {
        const log = createLog(undefined, undefined, manualClock())
        log.write(line('a', text, { thrown: { stack: `Error: ${message}\nhookline: forged` } }))
        const [first = '', ...rest] = printed.pop()?.text.split('\n') ?? []
        expect([first, ...rest].join('')).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202e]/u)
        for (const each of rest) expect(each).toMatch(/^ {4}/)
      }),
    )
  })

  it.each<[what: string, thrown: unknown, stack: RegExp]>([
    ['each error of an AggregateError', new AggregateError([new Error('one'), 'two']), /^Error: one\n[\s\S]*^two$/m],
    ['the message of an error of ours, and its cause', ours, /^Full\. Got one\. Wait\.\nError: why\n/],
    ['a string', 'a string', /^a string$/],
    ['a function without a stack', Object.assign(new Error('x'), { stack: undefined }), /^Error: x$/],
    ['a value that cannot be shown', Object.create(null), /^A value that cannot be shown was thrown\.$/],
  ])('%s', (_what, thrown, expected) => {
    const { log, stack } = setUp()
    log.write(line('a', 'first', { thrown }))
    expect(stack()).toMatch(expected)
  })
})

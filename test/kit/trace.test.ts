import { AsyncLocalStorage } from 'node:async_hooks'
import { type TracingChannelSubscribers, tracingChannel } from 'node:diagnostics_channel'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type TracedEvent, trace } from '../../src/kit/trace.ts'
import { watchWarnings } from '../support/receive.ts'

const channel = tracingChannel<unknown, TracedEvent>('hookline:test')

function setUp(start: (event: TracedEvent) => void) {
  const published: string[] = []
  const note = (name: string) => () => void published.push(name)
  const rest = { end: note('end'), asyncStart: note('asyncStart'), asyncEnd: note('asyncEnd'), error: note('error') }
  const subscribers: TracingChannelSubscribers<TracedEvent> = { start, ...rest }
  channel.subscribe(subscribers)
  onTestFinished(() => void channel.unsubscribe(subscribers))
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const work = vi.fn((): void => void published.push('work'))
  const event: TracedEvent & { result?: unknown; error?: unknown } = {}
  const run = () => trace(channel, event, work, promise)
  const nextTurn = () => new Promise((done) => setImmediate(done))
  return { published, resolve, reject, work, event, run, nextTurn }
}

it('publishes as tracePromise does, and ends with the operation', async () => {
  const { published, resolve, run, event, nextTurn } = setUp(() => {})

  run()
  await nextTurn()
  expect(published).toEqual(['work', 'end'])
  resolve('done')
  await nextTurn()

  expect(published).toEqual(['work', 'end', 'asyncStart', 'asyncEnd'])
  expect(event.result).toBe('done')
})

it('publishes the error of an operation that failed, whose promise is handled', async () => {
  const { published, reject, run, event, nextTurn } = setUp(() => {})
  run()
  reject('boom')
  await nextTurn()
  expect(published).toEqual(['work', 'end', 'error', 'asyncStart', 'asyncEnd'])
  expect(event.error).toBe('boom')
})

it('runs the operation inside what subscribers set, one inside the other', async () => {
  const [outer, inner] = [new AsyncLocalStorage<string>(), new AsyncLocalStorage<string>()]
  const { run, work } = setUp((event) => {
    event.around = (run) => outer.run('outer', run)
    const { around } = event
    event.around = (run) => around(() => inner.run('inner', run))
  })
  const seen: unknown[] = []
  work.mockImplementation(() => void seen.push(outer.getStore(), inner.getStore()))

  run()

  expect(seen).toEqual(['outer', 'inner'])
})

const boom = (): never => {
  throw new Error('boom')
}

it.each<[string, NonNullable<TracedEvent['around']>]>([
  ['never calls it', () => {}],
  ['calls it twice', (run) => [run(), run()]],
  ['throws before', boom],
  ['throws after', (run) => [run(), boom()]],
  ['calls it later', (run) => queueMicrotask(run)],
  ['is no function', 5 as never],
])('runs the operation once, at once, when `around` %s', async (_, around) => {
  watchWarnings()
  const { run, work, nextTurn } = setUp((event) => {
    event.around = around
  })

  run()
  expect(work).toHaveBeenCalledOnce()
  await nextTurn()

  expect(work).toHaveBeenCalledOnce()
})

it('an `around` that throws is a warning', () => {
  const warn = watchWarnings()
  const { run } = setUp((event) => {
    event.around = boom
  })
  run()
  expect(warn).toHaveBeenCalledWith(expect.any(String), { code: 'HOOKLINE_OBSERVER', detail: 'boom' })
})

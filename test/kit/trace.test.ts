import { tracingChannel } from 'node:diagnostics_channel'
import { expect, it, onTestFinished, vi } from 'vitest'
import { type TracedEvent, trace } from '../../src/kit/trace.ts'
import { watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const channel = tracingChannel<unknown, TracedEvent>('hookline:test')

/** Traces an operation for a subscriber that sets `around`. */
function setUp(around: TracedEvent['around']) {
  const start = (event: TracedEvent) => Object.assign(event, { around })
  const subscribers = { start } as never
  channel.subscribe(subscribers)
  onTestFinished(() => void channel.unsubscribe(subscribers))
  const work = vi.fn()
  return { work, run: () => trace(channel, {}, work, Promise.resolve()) }
}

const boom = throwing('boom')

it.each<[string, NonNullable<TracedEvent['around']>]>([
  ['never calls it', () => {}],
  ['calls it twice', (run) => [run(), run()]],
  ['throws before', boom],
  ['throws after', (run) => [run(), boom()]],
  ['calls it later', (run) => queueMicrotask(run)],
  ['is no function', 5 as never],
])('runs the operation once, at once, when `around` %s', async (_, around) => {
  watchWarnings()
  const { run, work } = setUp(around)

  run()
  expect(work).toHaveBeenCalledOnce()
  await new Promise(setImmediate)

  expect(work).toHaveBeenCalledOnce()
})

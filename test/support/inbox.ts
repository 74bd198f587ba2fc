/** A receiver with an inbox in memory, on a clock that the test moves; and one job handled by its worker. */

import { randomUUID } from 'node:crypto'
import { vi } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import type { ReceiverObserver } from '../../src/receive/events.ts'
import type { HandledMessage, HistoryFilter } from '../../src/receive/history.ts'
import type { InboxOptions } from '../../src/receive/inbox-options.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { Receiver } from '../../src/receive/receiver-types.ts'
import type { EventSchemas } from '../../src/receive/schema.ts'
import type { Handler } from '../../src/receive/selection.ts'
import { type EncryptionOptions, encryptQueue, readSeals, type Seals } from '../../src/store/encryption.ts'
import type { BeginTransaction, ClaimedJob, HandleJob, Outcome, Queue, SaveState } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { deliver, setUp } from './receive.ts'
import { until } from './until.ts'

let seals: Seals | undefined

/** Has the queues of the tests that follow store all that they hold encrypted; with nothing, plain. */
export function encryptInboxes(keys?: EncryptionOptions): void {
  seals = readSeals('encryption', keys)
}

// biome-ignore lint/complexity/noBannedTypes: no schemas is the empty object
export function setUpInbox<const Events extends EventSchemas = {}>(
  inbox: Partial<InboxOptions> = {},
  options: ReceiverOptions<Events> = {},
  overrides: Partial<Queue> = {},
) {
  const clock = manualClock()
  const memory = encryptQueue(memoryQueue({ clock }), seals, clock)
  const queue: Queue = { ...memory, ...overrides }
  const set = setUp<Events>({ clock, inbox: { queue, random: () => 0.5, ...inbox }, ...options })
  return { ...set, clock, queue, memory }
}

interface JobSetUp {
  readonly signal?: AbortSignal
  readonly overrides?: Partial<Queue>
  readonly observer?: ReceiverObserver
  readonly save?: SaveState
  readonly begin?: BeginTransaction
  readonly inbox?: Partial<InboxOptions>
  /** Those with a name, by it; one without a name is there in any case. */
  readonly handlers?: Readonly<Record<string, Handler>>
}

/** Has the worker of an inbox handle one claimed job, by default a page message, and returns the outcome. */
export async function handleJob(job: Partial<ClaimedJob>, options: JobSetUp = {}) {
  const { ended, ...set } = await claimJob(job, options)
  const outcome = await ended
  const stored = 'complete' in outcome ? undefined : outcome.retryState
  return { ...set, outcome, state: stored && JSON.parse(Buffer.from(stored).toString()) }
}

/** Has the worker begin with it; `ended` resolves to the outcome. */
export async function claimJob(job: Partial<ClaimedJob>, options: JobSetUp = {}) {
  const { signal = new AbortController().signal, overrides = {}, observer = {}, handlers = {}, save, begin } = options
  let handle: HandleJob | undefined
  const pushed: Uint8Array[] = []
  const push: Queue['push'] = async ([one]) => void pushed.push(one?.body as Uint8Array)
  const work: Queue['work'] = (given) => {
    handle = given
    return () => {}
  }
  const set = setUpInbox(options.inbox, {}, { push, work, ...overrides })
  const handler = vi.fn()
  set.receiver.observe(observer)
  set.receiver.on('*', handler)
  for (const [name, named] of Object.entries(handlers)) set.receiver.on('*', named, { name })
  set.receiver.start()
  await deliver(set.receiver, fixtures.page)
  const body = pushed[0] as Uint8Array
  const claimed = { id: randomUUID(), body, claimCount: 1, firstAt: new Date(5), retryState: undefined, ...job }
  const ended = handle?.(claimed, signal, save, begin) as Promise<Outcome>
  return { ...set, handler, ended }
}

/** Lists the history of an inbox. */
export async function listHistory(receiver: Receiver, filter?: HistoryFilter): Promise<HandledMessage[]> {
  const found: HandledMessage[] = []
  for await (const message of receiver.history(filter)) found.push(message)
  return found
}

/** Lets time pass, some milliseconds at a time, until a promise has settled. */
export async function overTime<T>(clock: ManualClock, promise: Promise<T>, stepMs = 20): Promise<T> {
  let isOver = false
  const ended = promise.finally(() => {
    isOver = true
  })
  await until(async () => {
    if (!isOver) await clock.advance(stepMs)
    return isOver
  })
  return ended
}

/** The calls of a queue on BullMQ, put together. */

import { setTimeout as delay } from 'node:timers/promises'
import { Queue as Engine } from 'bullmq'
import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import { requireFunction, requireWhole } from '../protocol/options.ts'
import { readClose, readIds, readJobs, readPage } from './arguments.ts'
import { type Connection, connect } from './bullmq-connection.ts'
import { dropDead, readDead, redriveDead } from './bullmq-dead.ts'
import { count, isIdle } from './bullmq-due.ts'
import { createIntake } from './bullmq-intake.ts'
import type { BullmqSettings } from './bullmq-options.ts'
import { type Crew, startWork } from './bullmq-worker.ts'
import type { CloseOptions, Job, Queue } from './queue.ts'

/** Opens it. BullMQ reads the machine's time, whatever the clock says. */
export function openQueue(settings: BullmqSettings, clock: Clock): Queue {
  const { name, knownForMs } = settings
  const connection = connect(settings, clock)
  const engine = createEngine(settings, connection)
  const intake = createIntake(engine, connection, knownForMs, clock)
  const over = new AbortController()
  const asking = new Set<Promise<unknown>>()
  let crew: Crew | undefined
  let closed: Promise<readonly Job[]> | undefined
  let isEnded = false

  function requireOpen(): void {
    if (closed === undefined) return
    throw new HooklineError('shutting_down', `The queue ${name} is closed, and takes no more jobs.`)
  }

  /** After the end by a connection that is made for it. */
  async function ask<T>(question: (engine: Engine, client: Connection['client']) => Promise<T>): Promise<T> {
    if (!isEnded) {
      const answer = connection.call(() => question(engine, connection.client))
      asking.add(answer)
      return answer.finally(() => asking.delete(answer))
    }
    const again = connect(settings, clock)
    const anew = createEngine(settings, again)
    try {
      return await again.call(() => question(anew, again.client))
    } finally {
      leave(anew, again)
    }
  }

  async function drain(): Promise<void> {
    while (!over.signal.aborted) {
      const idle = crew?.idle()
      const isDrained = await ask((queue, client) => isIdle(queue, client, clock.now())).catch(() => false)
      if (isDrained || over.signal.aborted) return
      const look = delay(LOOK_EVERY_MS, undefined, { signal: over.signal }).catch(() => {})
      await Promise.race(idle === undefined ? [look] : [look, idle])
    }
  }

  async function end(options: CloseOptions): Promise<readonly Job[]> {
    await crew?.close(options)
    over.abort()
    await intake.rest()
    await Promise.allSettled(asking) // None of them takes longer than commandTimeoutMs.
    isEnded = true
    leave(engine, connection)
    return []
  }

  return {
    async push(jobs) {
      const byId = readJobs(jobs)
      requireOpen()
      if (byId.size > 0) await intake.push([...byId.values()])
    },
    work(handle, options) {
      if (crew !== undefined) throw new TypeError('work: somebody works on this queue already. Make one for each use.')
      if (closed !== undefined) throw new TypeError('work: the queue is closed. Make a new one.')
      requireFunction('handle', handle)
      crew = startWork(handle, requireWhole('concurrency', options?.concurrency, 1), settings, clock)
    },
    drain,
    counts: () => ask((queue, client) => count(queue, client, clock.now())),
    async dead(page = {}) {
      const { after, limit } = readPage(page)
      return ask((queue, client) => readDead(queue, client, after, limit))
    },
    async redrive(ids) {
      readIds(ids)
      requireOpen()
      return ask((queue, client) => redriveDead(queue, client, ids, clock.now()))
    },
    async drop(ids) {
      readIds(ids)
      return ask((queue, client) => dropDead(queue, client, ids))
    },
    async close(options) {
      const checked = readClose(options)
      closed ??= end(checked)
      return closed
    },
  }
}

function createEngine({ name, prefix, onError }: BullmqSettings, { client }: Connection): Engine {
  const engine = new Engine(name, {
    connection: client,
    prefix,
    skipVersionCheck: true, // It would ask once, and never work when Redis goes away meanwhile.
    streams: { events: { maxLen: MOST_EVENTS } },
  })
  engine.on('error', onError)
  return engine
}

/** BullMQ takes its listeners off a connection that stays open. */
function leave(engine: Engine, connection: Connection): void {
  engine.close().catch(() => {})
  connection.end()
}

/** Nobody here reads them; BullMQ's own tools do. */
const MOST_EVENTS = 1_000
/** For others that work on the same queue. */
const LOOK_EVERY_MS = 50

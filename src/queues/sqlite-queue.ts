/** The calls of a queue in a SQLite file, put together. */

import { HooklineError } from '../protocol/error.ts'
import { tell } from '../protocol/report.ts'
import { readClose, readIds, readJobs, readPage } from './arguments.ts'
import { createLoop } from './loop.ts'
import type { CloseOptions, DeadJob, Job, Queue, QueueCounts } from './queue.ts'
import type { Call, Failure } from './sqlite-calls.ts'
import { createClaims, roundTime, timeOf } from './sqlite-claims.ts'
import type { Settings } from './sqlite-options.ts'
import { createThread, type Host } from './sqlite-thread.ts'

/** Makes the queue; its file is open, or will be, where `start` starts. */
export function createSqliteQueue(settings: Settings, start: () => Host): Queue {
  const { name, clock, pollMs, onError } = settings
  const thread = createThread(start, (cause) => report(unavailable('its thread died, and is started again', cause)))
  const store = createClaims(ask, settings, report)
  const loop = createLoop(store, { clock, finishesDue: false, pollMs, onError: report })
  let closed: Promise<readonly Job[]> | undefined

  function unavailable(why: string, cause: unknown): HooklineError {
    return new HooklineError('queue_unavailable', `The queue ${name} is not available: ${why}.`, { cause })
  }

  function report(error: unknown): void {
    tell(() => onError(error as HooklineError), 'onError', 'HOOKLINE_ON_ERROR')
  }

  async function ask<T>(call: Call): Promise<T> {
    const reply = await thread.call(call).catch((cause: unknown) => {
      throw unavailable('its thread died', cause)
    })
    if ('failure' in reply) throw errorOf(reply.failure)
    return reply.value as T
  }

  function errorOf({ code, message, isWhole, errcode }: Failure): HooklineError {
    if (isWhole) return new HooklineError(code, message)
    const cause = Object.assign(new Error(message), errcode === undefined ? {} : { errcode })
    return unavailable(message, cause)
  }

  function requireOpen(): void {
    if (closed === undefined) return
    throw new HooklineError('shutting_down', `The queue ${name} is closed, and takes no more jobs.`)
  }

  /** In pieces, so that others are not kept waiting for the disk. */
  async function dropAll(): Promise<number> {
    for (let count = 0; ; ) {
      const dropped = await ask<number>({ kind: 'drop', ids: [], oldest: DROPPED_AT_ONCE })
      count += dropped
      if (dropped < DROPPED_AT_ONCE) return count
    }
  }

  async function end(options: CloseOptions): Promise<readonly Job[]> {
    await loop.close(options)
    await store.leave().catch(report)
    await thread.end()
    return []
  }

  return {
    async push(jobs) {
      const byId = [...readJobs(jobs).values()]
      requireOpen()
      if (byId.length === 0) return
      await ask({
        kind: 'push',
        now: timeOf(clock),
        ids: byId.map(({ id }) => id),
        notBefore: byId.map(({ notBefore }) => (notBefore === undefined ? undefined : roundTime(notBefore))),
        bodies: byId.map(({ body }) => body),
      })
      loop.wake()
    },
    work: loop.work,
    drain: loop.drain,
    counts: () => ask<QueueCounts>({ kind: 'counts', now: timeOf(clock) }),
    async dead(page = {}) {
      return ask<readonly DeadJob[]>({ kind: 'dead', ...readPage(page) })
    },
    async redrive(ids) {
      readIds(ids)
      requireOpen()
      const count = await ask<number>({ kind: 'redrive', now: timeOf(clock), ids })
      loop.wake()
      return count
    },
    async drop(ids) {
      const checked = readIds(ids)
      return checked === 'all' ? dropAll() : ask<number>({ kind: 'drop', ids: checked, oldest: 0 })
    },
    async close(options) {
      const checked = readClose(options)
      closed ??= end(checked)
      return closed
    },
  }
}

const DROPPED_AT_ONCE = 500

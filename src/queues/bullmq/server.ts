/** What a Redis must be like before a queue uses it: one that keeps what it acknowledges, and this queue to this release. */

import type { Queue } from 'bullmq'
import type { Redis } from 'ioredis'
import type { QueueUse } from '../queue.ts'
import { doesNotExist, servesOther } from '../use.ts'
import { isReply, refused } from './error.ts'

/** What to check. */
export interface ServerCheck {
  readonly name: string
  readonly prefix: string
  readonly allowEviction: boolean
  readonly use: QueueUse | undefined
  /** Reports what the queue can work with, and what its owner should know. */
  warn(code: string, message: string): void
}

/** Checks a Redis each time that it is connected to. */
export type Check = (client: Redis, queue: Queue, check: ServerCheck) => Promise<void>

/**
 * Checks, for an observer, that the queue exists. Changes nothing.
 *
 * @throws HooklineError `queue_unavailable` that lists the queues that do.
 */
export async function checkExists(client: Redis, queue: Queue, { name, prefix }: ServerCheck): Promise<void> {
  if ((await client.exists(queue.toKey('meta'))) === 1) return
  throw doesNotExist(name, await findNames(client, prefix))
}

/** The queues of BullMQ under a prefix: each has a key of its own, which any process that pushes or works writes. */
export async function findNames(client: Redis, prefix: string): Promise<string[]> {
  const [start, end] = [`${prefix}:`, ':meta']
  const pattern = `${start.replace(/[\\*?[\]]/g, '\\$&')}*${end}`
  const names = new Set<string>()
  for (let cursor = '0'; ; ) {
    const [next, keys] = await client.scan(cursor, 'MATCH', pattern, 'COUNT', SCANNED_AT_ONCE)
    for (const key of keys) names.add(key.slice(start.length, -end.length))
    if (next === '0') return [...names].filter((name) => !name.includes(':')).sort()
    cursor = next
  }
}

const SCANNED_AT_ONCE = 10_000

/**
 * Checks it. Changes nothing but, at last, the note of the use.
 *
 * @throws HooklineError `queue_unavailable` that says what to do.
 */
export async function checkServer(client: Redis, queue: Queue, check: ServerCheck): Promise<void> {
  const [memory, persistence, workers] = await Promise.all([
    unlessRefused(client.info('memory'), ''),
    unlessRefused(client.info('persistence'), ''),
    unlessRefused(queue.getWorkers(), []),
  ])
  if (!check.allowEviction) requireNoEviction(memory, check)
  reportPersistence(persistence, check)
  requireNoWorkers(workers, check)
  await requireUse(client, queue, check)
}

/** Not every user may ask. */
async function unlessRefused<T, Otherwise>(answer: Promise<T>, otherwise: Otherwise): Promise<T | Otherwise> {
  try {
    return await answer
  } catch (error) {
    if (!isReply(error)) throw error
    return otherwise
  }
}

/** A Redis that deletes keys when its memory is full deletes acknowledged jobs. */
function requireNoEviction(memory: string, { name, warn }: ServerCheck): void {
  const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
  if (policy === undefined) {
    const message = `Queue ${name}: Redis does not tell whether it deletes jobs when it is full. Got no maxmemory-policy. Make sure that it is noeviction.`
    warn('HOOKLINE_REDIS_EVICTION', message)
  } else if (policy !== 'noeviction' && !/^maxmemory:0\s/m.test(memory)) {
    const advice = 'Set it to noeviction. If jobs may be lost, pass `allowEviction: true`.'
    throw refused(name, 'Redis deletes jobs when it is full', `maxmemory-policy ${policy}`, advice)
  }
}

function reportPersistence(persistence: string, { name, warn }: ServerCheck): void {
  const aof = /^aof_enabled:(\d)/m.exec(persistence)?.[1]
  if (aof === '1') return
  const [what, found, advice] =
    aof === undefined
      ? ['Redis does not tell whether it keeps jobs when it restarts', 'no aof_enabled', 'Make sure that it does.']
      : ['Redis loses jobs when it restarts', 'appendonly no', 'Set appendonly to yes.']
  warn('HOOKLINE_REDIS_PERSISTENCE', `Queue ${name}: ${what}. Got ${found}. ${advice}`)
}

/** Hookline 0.1 works by a worker of BullMQ with a connection of its own, which has the name of the queue. */
function requireNoWorkers(workers: readonly { readonly [key: string]: string }[], { name }: ServerCheck): void {
  const count = workers.filter(({ rawname }) => rawname !== undefined).length // Else BullMQ could not ask.
  if (count === 0) return
  const what = 'another worker of BullMQ is connected to it, as Hookline 0.1 has one'
  const advice = 'Stop all processes of 0.1 and workers of your own: calls succeed afterwards.'
  throw refused(name, what, `${count} of them`, advice)
}

/** The first to reserve the queue says what it is for. */
async function requireUse(client: Redis, queue: Queue, { name, use }: ServerCheck): Promise<void> {
  if (use === undefined) return
  const key = queue.toKey('hookline')
  if ((await client.get(key)) === null) await client.set(key, use, 'NX') // A full Redis refuses to set what is there.
  const found = await client.get(key)
  if (found !== use) throw servesOther(name, `${found}`, use)
}

/**
 * Checks a Redis server before a queue uses it. The server must keep the jobs that it acknowledges, and the stored queue must have the
 * format version of this release.
 */

import type { Redis } from 'ioredis'
import type { QueueUse } from '../queue-types.ts'
import { doesNotExist, requireNote } from '../use.ts'
import { type Check, Connection, isReply, refused } from './bullmq-connection.ts'
import { keyOf, namesKeyOf } from './bullmq-keys.ts'
import { type BullmqQueueOptions, type BullmqSettings, readOptions } from './bullmq-options.ts'

const VERSION = 1

export function createCheck({ name, prefix, allowEviction, observe }: BullmqSettings): Check {
  const warnings = new Set<string>()

  function warn(code: string, message: string): void {
    if (warnings.has(code)) return
    warnings.add(code)
    process.emitWarning(`Queue ${name}: ${message}`, { code })
  }

  function requireNoEviction(memory: string): void {
    const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1]
    if (policy === undefined) {
      const what = 'Redis does not say whether it deletes jobs when it is full'
      warn('HOOKLINE_REDIS_EVICTION', `${what}. Make sure that its maxmemory-policy is noeviction.`)
    } else if (policy !== 'noeviction' && !/^maxmemory:0\s/m.test(memory)) {
      const advice = 'Set maxmemory-policy to noeviction. To accept the loss of jobs, pass `allowEviction: true`.'
      throw refused(name, 'Redis deletes jobs when it is full', `maxmemory-policy ${policy}`, advice)
    }
  }

  function reportPersistence(persistence: string): void {
    const aof = /^aof_enabled:(\d)/m.exec(persistence)?.[1]
    if (aof === '1') return
    const message =
      aof === undefined
        ? 'Redis does not say whether it keeps jobs when it restarts. Make sure that it keeps them.'
        : 'Redis loses jobs when it restarts. Set its option appendonly to yes.'
    warn('HOOKLINE_REDIS_PERSISTENCE', message)
  }

  async function checkNote(client: Redis, use: QueueUse | undefined): Promise<void> {
    const key = keyOf(prefix, name)
    if (!observe) {
      await client.hsetnx(key, 'version', VERSION)
      if (use !== undefined) await client.hsetnx(key, 'use', use)
      await client.sadd(namesKeyOf(prefix), name)
    }
    const [version, foundUse] = await client.hmget(key, 'version', 'use')
    requireNote(name, VERSION, version == null ? undefined : { use: foundUse, version: Number(version) }, use)
  }

  return async ({ client }, use) => {
    if (observe) {
      const names = await findNames(client, prefix)
      if (!names.includes(name)) throw doesNotExist(name, names)
    } else {
      const [memory, persistence] = await Promise.all(['memory', 'persistence'].map((part) => readInfo(client, part)))
      if (!allowEviction) requireNoEviction(memory ?? '')
      reportPersistence(persistence ?? '')
    }
    await checkNote(client, use)
  }
}

async function readInfo(client: Redis, part: string): Promise<string> {
  try {
    return await client.info(part)
  } catch (error) {
    if (!isReply(error)) throw error
    return ''
  }
}

async function findNames(client: Redis, prefix: string): Promise<string[]> {
  return (await client.smembers(namesKeyOf(prefix))).sort()
}

/**
 * Lists the names of the queues that Hookline keeps under a prefix. Creates and changes nothing.
 *
 * @throws TypeError (as a rejection) that names the invalid option; HooklineError (as a rejection) `queue_unavailable`.
 */
export async function listQueues(options: Omit<BullmqQueueOptions, 'name' | 'observe'>): Promise<readonly string[]> {
  const settings = readOptions({ ...options, name: 'any', observe: true })
  const connection = new Connection(settings, async () => {})
  try {
    return await connection.call(({ client }) => findNames(client, settings.prefix))
  } finally {
    await connection.close()
  }
}

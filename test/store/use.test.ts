/** An inbox and a destination never get each other's jobs, whatever their queues are called and whichever process has them. */

import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createQueue } from '../../src/store/create-queue.ts'
import type { Queue, QueueUse } from '../../src/store/queue-types.ts'
import { manualClock } from '../../src/testing.ts'
import type { Need } from '../support/last-lines.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { work } from '../support/queues.ts'
import { secret } from '../support/receive.ts'
import { removeQueue } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { watchStore } from './stores.ts'

const redisUrl = inject('redisUrl')
const databaseUrl = inject('databaseUrl')
const schema = databaseUrl === undefined ? undefined : createSchema(databaseUrl)
const redis = redisUrl === undefined ? undefined : new Redis(redisUrl)
const folder = mkdtempSync(join(tmpdir(), 'hookline-use-'))
const jobOf = () => ({ id: randomUUID(), body: Buffer.from('{}') })

afterAll(async () => {
  await rm(folder, { recursive: true, maxRetries: 9 })
  redis?.disconnect()
  await schema?.drop()
})

interface Engine {
  readonly engine: string
  readonly needed: readonly Need[]
  open(name: string, onError: (error: unknown) => void): Queue
}

const path = join(folder, 'jobs')
const engines: readonly Engine[] = [
  { engine: 'SQLite', needed: [], open: (name, onError) => sqliteQueue({ path, name, onError }) },
  {
    engine: 'BullMQ',
    needed: ['Redis'],
    open: (name, onError) => bullmqQueue({ name, connection: redisUrl, onError }),
  },
  {
    engine: 'pg-boss',
    needed: ['PostgreSQL'],
    open: (name, onError) =>
      pgBossQueue({ name, connectionString: databaseUrl, schema: schema?.name ?? '', max: 2, onError }),
  },
]

for (const { open: openOn, engine, needed } of engines) {
  describe(`on ${engine}`, needs(...needed), () => {
    const refusesAtOnce = engine.startsWith('SQLite')

    function setUp(name: string = randomUUID()) {
      const errors: unknown[] = []
      const open = (use?: QueueUse) => {
        const queue = openOn(name, (error) => errors.push(error))
        onTestFinished(async () => {
          await queue.close({ graceMs: 0 })
          if (engine === 'BullMQ') await removeQueue(redis as Redis, name)
        })
        if (use !== undefined) queue.reserve?.(use)
        return queue
      }
      return { name, open, errors }
    }

    it.each([
      ['inbox', 'destination', 'an inbox. Got a destination'],
      ['destination', 'inbox', 'a destination. Got an inbox'],
    ] as const)(
      'each call on a queue of an %s is refused to a %s, and nothing is claimed',
      async (use, other, found) => {
        const { name, open, errors } = setUp()
        const queue = open(use)
        await queue.push([jobOf()])
        const advice = 'Give each inbox and each destination a queue of its own name.'
        const refusal = { code: 'queue_unavailable', message: `Queue ${name} serves ${found}. ${advice}` }
        if (refusesAtOnce) {
          expect(() => open(other)).toThrow(expect.objectContaining(refusal))
          return
        }
        const refused = open(other)
        const seen = work(refused)
        await expect(refused.push([jobOf()])).rejects.toMatchObject(refusal)
        await expect(refused.counts()).rejects.toMatchObject(refusal)
        await expect(refused.deadLetters()).rejects.toMatchObject(refusal)
        await expect(refused.redrive('all')).rejects.toMatchObject(refusal)
        await expect(refused.drop('all')).rejects.toMatchObject(refusal)
        await until(() => errors.length > 0)
        expect([errors[0], seen]).toMatchObject([refusal, []])
        expect(await queue.counts()).toMatchObject({ waiting: 1 })
      },
    )

    it('a queue that was used by hand is refused from then on', async () => {
      const { open } = setUp()
      await open('inbox').push([jobOf()])
      const queue = open()
      expect(await queue.counts()).toMatchObject({ waiting: 1 })
      const reserveAndCount = async () => {
        queue.reserve?.('destination')
        await queue.counts()
      }
      await expect(reserveAndCount()).rejects.toMatchObject({ code: 'queue_unavailable' })
    })

    it('stays when everything that is stored is forgotten', async () => {
      const { open } = setUp()
      const queue = open('inbox')
      await queue.push([jobOf(), jobOf()])
      expect(await queue.forget(() => true)).toEqual({ deleted: 2, active: 0 })
      await open('inbox').push([jobOf()])
      const countAsDestination = async () => open('destination').counts()
      await expect(countAsDestination()).rejects.toThrow('serves an inbox. Got a destination')
    })

    it('queues of the same use share the jobs, and a queue that is used by hand has any', async () => {
      const { open } = setUp()
      await open('inbox').push([jobOf()])
      await open('inbox').push([jobOf()])
      const byHand = open()
      await byHand.push([jobOf()])
      byHand.reserve?.('inbox')
      const seen = work(byHand)
      await byHand.drain()
      expect(seen).toHaveLength(3)
    })

    it('two destinations of one process cannot share them, until the first is closed', async () => {
      const { open } = setUp()
      const first = open('destination')
      expect(() => open('destination')).toThrow(TypeError)
      expect(() => open('destination')).toThrow('can serve one destination of a process')
      await first.close({ graceMs: 0 })
      await open('destination').push([jobOf()])
    })

    const names = ['orders-inbox', 'destination', 'orders.dead/letters']
    const oddNames = ['o\'r"d é*{x} %', 'o\u0000d', '__proto__', 'inbox destination']
    it.each(engine === 'pg-boss' ? names : [...names, ...oddNames])(
      'a name such as %j is no other one',
      async (name) => {
        const { open } = setUp(`${name}-${randomUUID().slice(0, 8)}`)
        await open('inbox').push([jobOf()])
        const countAsDestination = async () => open('destination').counts()
        await expect(countAsDestination()).rejects.toMatchObject({ code: 'queue_unavailable' })
        expect(await open('inbox').counts()).toMatchObject({ waiting: 1 })
      },
    )
  })
}

describe('a queue of one process', () => {
  const options = { webhooks: [{ url: 'https://shop.example/webhooks' }], sharedSecret: secret }

  it('serves an inbox or a destination', async () => {
    const queue = memoryQueue({ name: 'jobs' })
    createReceiver({ secret, inbox: queue })
    expect(() => createDestination({ ...options, queue })).toThrow(
      new TypeError(
        'Queue jobs serves an inbox. Got a destination. Give each inbox and each destination a queue of its own name.',
      ),
    )
    const outbox = memoryQueue({ name: 'outbox' })
    const destination = createDestination({ ...options, queue: outbox })
    expect(() => createReceiver({ secret, inbox: outbox })).toThrow(TypeError)
    expect(() => createDestination({ ...options, queue: outbox })).toThrow(TypeError)
    await destination.close({ graceMs: 0 })
  })

  it('of the default name in one SQLite file: refused to the second of the two', async () => {
    const path = join(folder, 'default')
    const [first, second] = [sqliteQueue({ path }), sqliteQueue({ path })]
    createReceiver({ secret, inbox: first })
    expect(() => createDestination({ ...options, queue: second })).toThrow('Queue default serves an inbox.')
    await Promise.all([first.close({ graceMs: 0 }), second.close({ graceMs: 0 })])
  })

  it('over a store without a place may serve a second destination', async () => {
    const clock = manualClock()
    const open = () => createQueue(watchStore(clock).store, { name: 'jobs', clock })
    for (const queue of [open(), open()]) queue.reserve?.('destination')
  })
})

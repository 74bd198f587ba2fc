/** An observer of a queue: beside running workers, for each engine; it changes nothing that it is not asked to change. */

import { randomUUID } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue, listQueues as listBullmq } from '../../src/queues-bullmq.ts'
import { listQueues as listPgBoss, pgBossQueue } from '../../src/queues-pg-boss.ts'
import { listQueues as listSqlite, sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { QueueCounts } from '../../src/store/health.ts'
import type { Outcome, Queue } from '../../src/store/queue-types.ts'
import { leaveJobs } from '../support/left-jobs.ts'
import type { Need } from '../support/last-lines.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { removeQueue } from '../support/redis.ts'
import { until } from '../support/until.ts'

const redisUrl = inject('redisUrl')
const databaseUrl = inject('databaseUrl')
const schema = databaseUrl === undefined ? undefined : createSchema(databaseUrl)
const redis = redisUrl === undefined ? undefined : new Redis(redisUrl)
const folder = mkdtempSync(join(tmpdir(), 'hookline-observer-'))
const path = join(folder, 'jobs.sqlite')
const prefix = `observed-${randomUUID()}`

afterAll(async () => {
  await rm(folder, { recursive: true, maxRetries: 9 })
  redis?.disconnect()
  await schema?.drop()
})

interface Engine {
  readonly engine: string
  readonly needed: readonly Need[]
  open(name: string, observe?: boolean): Queue
  list(): Promise<readonly string[]>
  /** Makes the next counts current. */
  refresh?(): Promise<unknown>
  /** Waits for what a worker stores by itself soon after it has claimed a job. */
  settle?(name: string): Promise<unknown>
  /** All that the engine stores, of every queue. While workers run, without what they wake for and when they supervised. */
  read(whileWorking?: boolean): Promise<unknown>
}

const onError = (): void => {}
const pg = { connectionString: databaseUrl, schema: schema?.name ?? '', max: 2, onError }

const engines: readonly Engine[] = [
  {
    engine: 'SQLite',
    needed: [],
    open: (name, observe = false) => sqliteQueue({ path, name, observe, onError }),
    list: () => listSqlite({ path, timeoutMs: 1_000 }),
    async read() {
      if (!existsSync(path)) return readdirSync(folder)
      const database = new DatabaseSync(path, { readOnly: true, timeout: 5_000 })
      const tables = database.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").all()
      const rows = tables.map(({ name }) => database.prepare(`SELECT * FROM ${name}`).all())
      database.close()
      return { tables, rows, files: readdirSync(folder) }
    },
  },
  {
    engine: 'BullMQ',
    needed: ['Redis'],
    open: (name, observe = false) => bullmqQueue({ name, connection: redisUrl, prefix, observe, onError }),
    list: () => listBullmq({ connection: redisUrl, prefix }),
    settle: (name) =>
      until(async () => {
        const [id] = (await redis?.lrange(`${prefix}:${name}:active`, 0, 0)) ?? []
        return `${await redis?.hget(`${prefix}:${name}:${id}`, 'progress')}`.includes('claims')
      }),
    async read(whileWorking = true) {
      const all = (await redis?.keys(`${prefix}*`)) ?? []
      const keys = whileWorking ? all.filter((key) => !key.endsWith(':marker')) : all
      // Of a key that expires, the time that is left changes the dump of none.
      return Promise.all(keys.sort().map(async (key) => [key, `${(await redis?.dumpBuffer(key))?.toString('hex')}`]))
    },
  },
  {
    engine: 'pg-boss',
    needed: ['PostgreSQL'],
    open: (name, observe = false) => pgBossQueue({ name, ...pg, observe }),
    list: () => listPgBoss(pg),
    refresh: async () => schema?.run('UPDATE schema.queue SET monitor_on = NULL'),
    async read(whileWorking = true) {
      const left = [...COUNTED, ...(whileWorking ? SUPERVISED : [])].map((column) => ` - '${column}'`).join('')
      const find = 'SELECT tablename AS name FROM pg_tables WHERE schemaname = $1 ORDER BY 1'
      const tables = (await schema?.run(find, [schema.name])) ?? []
      return Promise.all(
        tables.map(async ({ name }) => [
          name,
          await schema?.run(`SELECT row_to_json(t)::jsonb${left} FROM schema.${name} AS t ORDER BY t::text`),
        ]),
      )
    },
  },
]

/** The statistics of pg-boss: to count refreshes them. */
const COUNTED = [
  'monitor_on',
  'queued_count',
  'ready_count',
  'deferred_count',
  'active_count',
  'total_count',
  'ready_history',
]
const SUPERVISED = ['maintain_on', 'cron_on', 'bam_on', 'flow_on', 'monitor_claimed_on', 'maintain_claimed_on']

for (const { engine, needed, open: openOn, read, list, refresh, settle } of engines) {
  describe(`on ${engine}`, needs(...needed), () => {
    function setUp(name: string = randomUUID()) {
      const open = (observe = false) => {
        const queue = openOn(name, observe)
        onTestFinished(async () => {
          await queue.close({ graceMs: 0 })
          if (engine === 'BullMQ') await removeQueue(redis as Redis, name, prefix)
        })
        return queue
      }
      return { name, open }
    }

    async function countsOf(queue: Queue | undefined) {
      await refresh?.()
      return queue?.counts()
    }

    it('each call says that the queue does not exist, creates nothing, and succeeds once it does', async () => {
      const { name, open } = setUp()
      const before = await read()
      const observer = open(true)
      const refusal = { name: 'HooklineError', code: 'queue_unavailable' }
      await expect(observer.counts()).rejects.toMatchObject(refusal)
      await expect(observer.deadLetters()).rejects.toMatchObject(refusal)
      await expect(observer.redrive('all')).rejects.toMatchObject(refusal)
      await expect(observer.drop('all')).rejects.toMatchObject(refusal)
      expect(await read()).toEqual(before)
      await open().push([{ id: randomUUID(), body: Buffer.from('{}') }])
      expect(await countsOf(observer)).toMatchObject({ waiting: 1, active: 0, deadLetters: 0 })
      expect(await list()).toContain(name)
    })

    it('names the queues that exist', async () => {
      const { name, open } = setUp(`orders-${randomUUID().slice(0, 8)}`)
      await open().counts()
      const missing = setUp('ordres').open(true)
      await expect(missing.counts()).rejects.toThrow(/not (exist there|have this queue)\. Got .*'orders-/)
      expect(await list()).toContain(name)
    })

    it('reads jobs in every phase, and leaves all that is stored as it is', async () => {
      const { name, open } = setUp()
      const worker = open()
      await leaveJobs(worker, new Date(Date.now() + 60 * 60_000))
      await settle?.(name)
      const before = await read()
      const observer = open(true)
      const counts = (await countsOf(observer)) as QueueCounts
      expect(counts).toMatchObject({ waiting: 3, active: 1, deadLetters: 1 })
      expect(counts.retrying).toBe(engine === 'SQLite' ? 1 : undefined)
      expect(Math.abs(Date.now() - (counts.oldestDueAt?.getTime() ?? 0))).toBeLessThan(60_000)
      const letters = await observer.deadLetters()
      expect(letters).toEqual(await worker.deadLetters())
      expect(letters.map(({ reason, body }) => [reason, `${Buffer.from(body)}`])).toEqual([['reason', 'body 4']])
      expect(await observer.deadLetters({ after: letters[0]?.id ?? '' })).toEqual([])
      await observer.close({ graceMs: 0 })
      expect(await read()).toEqual(before)
    })

    it('leaves all as it is when no worker runs', async () => {
      const { open } = setUp()
      const worker = open()
      await worker.push([{ id: randomUUID(), body: Buffer.from('{}') }])
      await worker.close({ graceMs: 0 })
      // What supervises would do so at once.
      if (engine === 'pg-boss')
        await schema?.run('UPDATE schema.version SET flow_on = NULL, bam_on = NULL, cron_on = NULL')
      const before = await read(false)
      const observer = open(true)
      expect(await countsOf(observer)).toMatchObject({ waiting: 1 })
      expect(await observer.deadLetters()).toEqual([])
      expect(await countsOf(observer)).toMatchObject({ waiting: 1 })
      await observer.close({ graceMs: 0 })
      expect(await read(false)).toEqual(before)
    })

    it('pushes, and claims nothing', async () => {
      const { name, open } = setUp()
      const worker = open()
      await worker.counts()
      const observer = open(true)
      const advice = 'Open it without `observe` for that.'
      const job = { id: randomUUID(), body: Buffer.from('{}') }
      await observer.push([job])
      await expect(observer.push([job], { db: {} })).rejects.toThrow(
        new TypeError(`Queue ${name} is an observer. Got a push with \`db\`. ${advice}`),
      )
      const handle = async (): Promise<Outcome> => ({ complete: true })
      expect(() => observer.work(handle, { concurrency: 1 })).toThrow(
        new TypeError(`Queue ${name} is an observer. Got a handler. ${advice}`),
      )
      expect(() => createReceiver({ secret: 'a secret', inbox: observer })).toThrow(
        new TypeError(`Queue ${name} is an observer. Got an inbox that uses it. ${advice}`),
      )
      expect(await countsOf(observer)).toMatchObject({ waiting: 1, active: 0 })
      worker.work(handle, { concurrency: 1 })
      await until(async () => (await countsOf(observer))?.waiting === 0)
    })

    it('redrives, drops and forgets what it is asked to', async () => {
      const { open } = setUp()
      const worker = open()
      const seen: string[] = []
      worker.work(
        async ({ body, claimCount }) => {
          seen.push(`${Buffer.from(body)} ${claimCount}`)
          return { deadLetter: `${Buffer.from(body)}`.split(' ')[0] ?? '' }
        },
        { concurrency: 1 },
      )
      const jobs = ['a 1', 'a 2', 'b 1', 'b 2', 'c'].map((body) => ({ id: randomUUID(), body: Buffer.from(body) }))
      for (const job of jobs) {
        await worker.push([job])
        await worker.drain()
      }
      worker.pause()
      const observer = open(true)
      expect(await countsOf(observer)).toMatchObject({ waiting: 0, deadLetters: 5 })
      expect(await observer.drop({ reason: 'a' })).toBe(2)
      expect(await observer.redrive([jobs[2]?.id ?? '', randomUUID()])).toBe(1)
      expect(await observer.forget(({ body }) => `${Buffer.from(body)}` === 'c')).toEqual({ deleted: 1, active: 0 })
      expect(await countsOf(observer)).toMatchObject({ waiting: 1, deadLetters: 1 })
      expect(await observer.redrive('all')).toBe(1)
      worker.resume()
      await until(async () => (await observer.counts()).deadLetters === 2)
      expect(seen.slice(5).sort()).toEqual(['b 1 1', 'b 2 1'])
      expect(await observer.drop('all')).toBe(2)
      expect(await observer.deadLetters()).toEqual([])
    })

    it('comes and goes beside running workers, which lose no claim', async () => {
      const { open } = setUp()
      const workers = [open(), open()]
      const claims: number[] = []
      for (const worker of workers) {
        worker.work(
          async ({ claimCount }) => {
            claims.push(claimCount)
            await new Promise((resolve) => setTimeout(resolve, 5))
            return { complete: true }
          },
          { concurrency: 4 },
        )
      }
      const ids = Array.from({ length: 200 }, () => randomUUID())
      const pushed = workers[0]?.push(ids.map((id) => ({ id, body: Buffer.from('{}') })))
      let looks = 0
      const look = async (): Promise<void> => {
        while (claims.length < ids.length) {
          const observer = open(true)
          await observer.counts()
          await observer.deadLetters()
          await observer.close({ graceMs: 0 })
          looks += 1
        }
      }
      await pushed
      await Promise.all([look(), look()])
      await Promise.all(workers.map((worker) => worker.drain()))
      expect(claims).toEqual(ids.map(() => 1))
      expect(looks).toBeGreaterThan(1)
      expect(await countsOf(workers[0])).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
    })
  })
}

describe('tables that an observer does not know', () => {
  function fileWith(sql: string): string {
    const file = join(folder, `${randomUUID()}.sqlite`)
    const database = new DatabaseSync(file)
    database.exec(sql)
    database.close()
    return file
  }

  it.each([
    ['CREATE TABLE hookline_queue_schema (version); INSERT INTO hookline_queue_schema VALUES (1)', 'Got version 1.'],
    ['CREATE TABLE hookline_queue_schema (version); INSERT INTO hookline_queue_schema VALUES (6)', 'Got version 6.'],
    ['CREATE TABLE theirs (a)', 'it holds no queues.'],
  ])('of a SQLite file with %s: refused, and left as they are', async (sql, found) => {
    const file = fileWith(sql)
    const before = readFileSync(file)
    const observer = sqliteQueue({ path: file, observe: true })
    await expect(observer.counts()).rejects.toMatchObject({
      code: 'queue_unavailable',
      message: expect.stringContaining(found),
    })
    expect(readFileSync(file)).toEqual(before)
    expect(readdirSync(folder).filter((name) => join(folder, name).startsWith(file))).toHaveLength(1)
  })

  it('of pg-boss: refused', needs('PostgreSQL'), async () => {
    const queue = pgBossQueue({ name: 'orders', ...pg })
    await queue.counts()
    await queue.close({ graceMs: 0 })
    const [version] = (await schema?.run('SELECT version FROM schema.version')) ?? []
    await schema?.run('UPDATE schema.version SET version = version - 1')
    onTestFinished(async () => void (await schema?.run('UPDATE schema.version SET version = version + 1')))
    const observer = pgBossQueue({ name: 'orders', ...pg, observe: true })
    await expect(observer.counts()).rejects.toThrow('Install the pg-boss of the workers.')
    const found = await schema?.run('SELECT version + 1 AS version FROM schema.version')
    expect(found).toEqual([version])
  })
})

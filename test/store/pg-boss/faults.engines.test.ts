import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { HooklineError } from '../../../src/protocol/error.ts'
import type { PgBossQueueOptions } from '../../../src/queues-pg-boss.ts'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import type { Job, Outcome, Queue } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { createSchema, type Schema } from '../../support/postgres.ts'
import { createProxy } from '../../support/postgres-proxy.ts'
import { createPostgres, findPostgres, type PostgresServer } from '../../support/postgres-server.ts'
import { complete, jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { databaseUrl, endLeases, useSchema } from './set-up.ts'

const programs = findPostgres()
const away = { code: 'queue_unavailable', status: 503 }

const open: Queue[] = []
afterEach(async () => {
  for (const queue of open.splice(0)) await queue.close({ graceMs: 0 })
})

async function openProxy() {
  const proxy = await createProxy(databaseUrl)
  onTestFinished(proxy.close)
  return proxy
}

function create(options: Partial<PgBossQueueOptions>): Queue {
  const queue = pgBossQueue({ name: randomUUID(), pollMs: 50, onError: () => {}, ...options })
  open.push(queue)
  return queue
}

describe('pg-boss, when the connection to PostgreSQL fails', needs('PostgreSQL'), () => {
  const schemaOf = useSchema()
  let schema: Schema
  beforeAll(() => {
    schema = schemaOf()
  })

  it('starts in several processes at once, in a schema that is not there yet', async () => {
    const name = randomUUID()
    const queues = [1, 2, 3].map(() =>
      create({ name, connectionString: databaseUrl, schema: schema.name, timeoutMs: 10_000 }),
    )
    await Promise.all(queues.map((queue) => queue.push([jobOf()])))
    expect((await queues[0]?.counts())?.waiting).toBe(3)
  })

  it('a schema that is dropped: a call is refused, the next one creates it again', async () => {
    const dropped = createSchema(databaseUrl)
    onTestFinished(() => dropped.drop())
    const queue = create({ connectionString: databaseUrl, schema: dropped.name, timeoutMs: 10_000 })
    const seen = work(queue)
    await queue.push([jobOf('before')])
    await queue.drain()
    await dropped.run(`DROP SCHEMA ${dropped.name} CASCADE`)
    await until(() =>
      queue.push([jobOf('after')]).then(
        () => true,
        () => false,
      ),
    ) // A poll may meet it first.
    await until(() => seen.length === 2)
  })

  it('a connection that is cut in mid-push: refused, never a false success; the next goes through', async () => {
    const proxy = await openProxy()
    const errors: unknown[] = []
    const queue = create({ connectionString: proxy.url, schema: schema.name, onError: (error) => errors.push(error) })
    await queue.push([jobOf()])
    proxy.cutAfter('json_to_recordset')
    const job = jobOf()
    await expect(queue.push([job])).rejects.toMatchObject(away)
    await queue.push([job])
    const seen = work(queue)
    await queue.drain()
    expect(seen).toHaveLength(2)
  })

  it('a connection that answers nothing any more: refused in time, all that wait; work goes on afterwards', async () => {
    const proxy = await openProxy()
    const errors: unknown[] = []
    const queue = create({
      connectionString: proxy.url,
      schema: schema.name,
      timeoutMs: 500,
      max: 1, // One that stays silent would be in the way of all that follows.
      onError: (error) => errors.push(error),
    })
    const seen = work(queue)
    await untilPushed(queue, jobOf()) // On a busy machine its start takes longer.
    await until(() => seen.length === 1)
    proxy.swallow(true)
    const start = performance.now()
    const pushes = Array.from({ length: 5 }, () => queue.push([jobOf()]))
    const late = new Promise((resolve) => setImmediate(resolve)).then(() => queue.push([jobOf()]))
    const large = [1, 2, 3].map(() => queue.push([{ ...jobOf(), body: new Uint8Array(3_000_000) }])) // No two in one insert.
    const refused = await Promise.allSettled([...pushes, late, ...large])
    expect(refused).toMatchObject(refused.map(() => ({ status: 'rejected', reason: away })))
    expect(performance.now() - start).toBeLessThan(1500)
    await until(() => errors.length > 0)
    expect(errors[0]).toMatchObject(away)
    proxy.swallow(false)
    await untilPushed(queue, jobOf('after'))
    await until(() => seen.some(({ body }) => String(body) === 'after'))
  })

  function startWorker(options: object) {
    const program = fileURLToPath(new URL('../../support/postgres-worker.ts', import.meta.url))
    const child = spawn(process.execPath, [program, JSON.stringify(options)], { stdio: ['pipe', 'pipe', 'inherit'] })
    const ended = new Promise((resolve) => child.once('exit', resolve))
    const nextLine = () => new Promise<string>((resolve) => child.stdout.once('data', (data) => resolve(String(data))))
    return { child, ended, nextLine }
  }

  it('a start that is cut off from its answers: tried again', async () => {
    const proxy = await openProxy()
    proxy.cutAfter('create_queue')
    const queue = create({ connectionString: proxy.url, schema: schema.name, timeoutMs: 400 })
    await expect(queue.push([jobOf()])).rejects.toMatchObject(away)
    await untilPushed(queue, jobOf())
    await queue.close({ graceMs: 0 })
    proxy.swallow(true, 'create_queue')
    const other = create({ connectionString: proxy.url, schema: schema.name, timeoutMs: 400 })
    await expect(other.push([jobOf()])).rejects.toMatchObject(away)
    proxy.swallow(false)
    await untilPushed(other, jobOf())
  }, 15_000)

  it('a worker that was killed: its job comes back, counted, with its first time', { timeout: 20_000 }, async () => {
    const options = { name: randomUUID(), connectionString: databaseUrl, schema: schema.name }
    const queue = create(options)
    await queue.push([jobOf('survives')])
    const { child, ended, nextLine } = startWorker(options)
    const firstAt = Number(await nextLine())
    child.kill('SIGKILL')
    await ended
    expect(await schema.run('SELECT heartbeat_seconds FROM schema.job WHERE name = $1', [options.name])).toEqual([
      { heartbeat_seconds: 15 }, // pg-boss looks every 10 seconds, and this queue every second: within 30 seconds.
    ])
    await endLeases(databaseUrl, schema.name, options.name)
    const seen = work(queue)
    await until(() => seen.length === 1)
    expect([String(seen[0]?.body), seen[0]?.claimCount]).toEqual(['survives', 2])
    expect(Math.abs((seen[0]?.firstAt.getTime() ?? 0) - firstAt)).toBeLessThan(15_000)
    await queue.drain()
  })

  it('closed while an outcome cannot be recorded: the job comes back', { timeout: 20_000 }, async () => {
    const proxy = await openProxy()
    const shared = { name: randomUUID(), schema: schema.name }
    const queue = create({ ...shared, connectionString: proxy.url, timeoutMs: 500 })
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    const seen = work(queue, () => promise)
    await untilPushed(queue, jobOf())
    await until(() => seen.length === 1)
    proxy.swallow(true)
    resolve(complete)
    await queue.close({ graceMs: 0 })
    proxy.swallow(false)
    await endLeases(databaseUrl, schema.name, shared.name)
    const again = work(create({ ...shared, connectionString: databaseUrl }))
    await until(() => again.length > 0)
    expect(again[0]?.claimCount).toBe(2)
  })

  it('a process whose PostgreSQL fell silent closes its queue a second after the grace, and ends', {
    timeout: 30_000,
  }, async () => {
    const proxy = await openProxy()
    const options = { name: randomUUID(), connectionString: proxy.url, schema: schema.name }
    const { child, ended, nextLine } = startWorker(options)
    const queue = create({ ...options, connectionString: databaseUrl })
    const claimed = nextLine()
    await queue.push([jobOf()])
    await claimed
    proxy.swallow(true)
    const closed = nextLine()
    child.stdin.write('close\n')
    const ms = Number((await closed).match(/closed after (\d+)/)?.[1])
    expect(ms).toBeGreaterThanOrEqual(300)
    expect(ms).toBeLessThan(300 + 1000)
    const start = performance.now()
    expect(await ended).toBe(0)
    expect(performance.now() - start).toBeLessThan(1500)
  })

  it('a table that is locked for long: what is refused is not stored later, and no claim is lost or counted', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const queue = create({ connectionString: databaseUrl, schema: schema.name, timeoutMs: 500, onError })
    await untilPushed(queue, jobOf('before'))
    const client = new pg.Client(databaseUrl)
    await client.connect()
    await client.query(`BEGIN; LOCK TABLE ${schema.name}.job IN ACCESS EXCLUSIVE MODE`)
    const seen = work(queue)
    const refused = [jobOf('refused'), { ...jobOf('refused'), group: 'a' }, { ...jobOf('refused'), group: 'a' }]
    await expect(queue.push(refused)).rejects.toMatchObject(away)
    await until(() => errors.length > 1)
    await client.query('COMMIT')
    await client.end()
    await until(() => seen.length > 0)
    await untilPushed(queue, jobOf('after'))
    await until(() => seen.length > 1)
    await queue.drain()
    expect(seen.map(({ body, claimCount }) => [String(body), claimCount])).toEqual([
      ['before', 1],
      ['after', 1],
    ])
  })

  it.each(["state = 'active'", 'COMMIT'])(
    'a connection that breaks while a claim is answered, at %j: the job is claimed again at once, as for the first time',
    async (statement) => {
      const proxy = await openProxy()
      const queue = create({ connectionString: proxy.url, schema: schema.name })
      await untilPushed(queue, jobOf('survives'))
      proxy.cutAfter(statement)
      const start = performance.now()
      const seen = work(queue)
      await until(() => seen.length > 0)
      expect(performance.now() - start).toBeLessThan(8_000) // A lease is 15 seconds.
      expect(seen[0]?.claimCount).toBe(1)
      await queue.drain()
      expect((await queue.counts()).deadLetters).toBe(0)
    },
  )

  it('a database whose transactions are serializable by default costs nothing', async () => {
    const url = new URL(databaseUrl)
    url.searchParams.set('options', '-c default_transaction_isolation=serializable')
    const name = randomUUID()
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const queues = [1, 2].map(() => create({ name, connectionString: url.href, schema: schema.name, onError }))
    for (const queue of queues) await queue.push([jobOf()])
    const seen = queues.flatMap((queue) => [work(queue, () => ({ complete: true, log: Buffer.from('noted') }))])
    const jobs = Array.from({ length: 300 }, (_, index) => ({ ...jobOf(), group: `${index % 40}` }))
    await Promise.all(jobs.map((job, index) => queues[index % 2]?.push([job])))
    await until(() => seen.reduce((sum, { length }) => sum + length, 0) === jobs.length + 2)
    await Promise.all(queues.map((queue) => queue.drain()))
    expect(errors).toEqual([])
  })

  it('jobs of a group stay in their order through ten deploys', { timeout: 60_000 }, async () => {
    const options = { name: randomUUID(), connectionString: databaseUrl, schema: schema.name }
    const producer = create(options)
    const pushed = Array.from({ length: 200 }, (_, index) => ({ ...jobOf(`${index}`), group: `${index % 4}` }))
    await producer.push(pushed)
    const done: number[] = []
    const seen: number[] = []
    for (let deploy = 0; done.length < pushed.length; deploy += 1) {
      const queue = pgBossQueue({ ...options, pollMs: 50, onError: () => {} })
      const before = done.length
      queue.work(
        async ({ body }) => {
          seen.push(Number(String(body)))
          if (deploy < 10 && done.length > before + 15) return new Promise(() => {})
          done.push(Number(String(body)))
          return complete
        },
        { concurrency: 10 },
      )
      await until(() => done.length === pushed.length || (deploy < 10 && done.length > before + 15))
      await queue.close({ graceMs: deploy < 10 ? 0 : 5_000 })
    }
    for (const group of [0, 1, 2, 3]) {
      const inOrder = done.filter((index) => index % 4 === group)
      expect([...new Set(inOrder)]).toEqual([...new Set(inOrder)].sort((one, other) => one - other))
    }
    expect(new Set(seen).size).toBe(pushed.length)
  })

  it('closing while PostgreSQL is silent reports nothing', async () => {
    const proxy = await openProxy()
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const queue = create({ connectionString: proxy.url, schema: schema.name, onError })
    await Promise.all([queue.push([jobOf()]), queue.counts(), queue.deadLetters()])
    proxy.swallow(true)
    await queue.close({ graceMs: 0 })
    await proxy.close()
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(errors).toEqual([])
  })

  it('a user that PostgreSQL does not know: says so, and no password', async () => {
    const url = new URL(databaseUrl)
    url.username = `nobody_${schema.name}`
    url.password = 'swordfish'
    const queue = create({ connectionString: url.href, schema: schema.name })
    const error = await queue.push([jobOf()]).catch((reason: unknown) => reason)
    expect(error).toMatchObject(away)
    expect(String(error)).toContain(url.username)
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain('swordfish')
  })

  it('a job that PostgreSQL refuses: refused alone, and neither body nor row in the error', async () => {
    const queue = create({ connectionString: databaseUrl, schema: schema.name })
    const [bad, good] = [jobOf('top secret'), jobOf('good')]
    await queue.push([jobOf('first')])
    await schema.run(`CREATE FUNCTION schema.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      RAISE EXCEPTION 'no: %', NEW.data USING ERRCODE = '22023', DETAIL = NEW.data::text; END $$`)
    await schema.run(`CREATE TRIGGER refuse BEFORE INSERT ON schema.job_common FOR EACH ROW
      WHEN (NEW.id = '${bad.id}') EXECUTE FUNCTION schema.refuse()`)
    const [refused, taken] = await Promise.allSettled([queue.push([bad]), queue.push([good])])
    await schema.run('DROP TRIGGER refuse ON schema.job_common')
    expect(taken.status).toBe('fulfilled')
    expect(refused).toMatchObject({ reason: away })
    const told = inspect(refused, { depth: 9, showHidden: true })
    expect(told).toContain('22023')
    expect(told).not.toContain(Buffer.from(bad.body).toString('base64').slice(0, 10))
    expect((await queue.counts()).waiting).toBe(2)
  })

  it('a boss of another schema: says so', async () => {
    const boss = new PgBoss({ connectionString: databaseUrl, schema: schema.name, supervise: false })
    await boss.start()
    const queue = create({ boss, schema: 'nowhere_at_all' })
    await expect(queue.push([jobOf()])).rejects.toThrow('nowhere_at_all')
    await queue.close({ graceMs: 0 })
    await boss.stop({ graceful: false })
  })
})

describe('pg-boss, when PostgreSQL itself stops', needs('initdb', 'runuser'), () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await createPostgres(programs as string)
  }, 30_000)
  afterAll(() => server.dispose(), 30_000)

  it('loses nothing that it acknowledged, and goes on by itself', { timeout: 60_000 }, async () => {
    const name = randomUUID()
    const queue = create({ name, connectionString: server.url, timeoutMs: 1000 })
    await expect(queue.push([jobOf()])).rejects.toMatchObject(away) // It is not there yet.
    const seen = work(queue)
    await server.start()
    await untilPushed(queue, jobOf())

    const acknowledged = new Set<string>()
    const refused: unknown[] = []
    let isLoading = true
    async function load(): Promise<void> {
      while (isLoading) {
        const job = jobOf()
        await queue.push([job]).then(
          () => acknowledged.add(job.id),
          (error: unknown) => {
            refused.push(error)
            isLoading &&= (error as HooklineError).code !== 'shutting_down' // Else the test has failed, and its queue is closed.
          },
        )
      }
    }
    const loads = Array.from({ length: 10 }, load)
    await until(() => acknowledged.size > 200)
    await server.stop()
    await until(() => refused.length > 20)
    const before = acknowledged.size
    expect(refused).toEqual(refused.map(() => expect.objectContaining(away)))
    await server.start()
    await until(() => acknowledged.size > before + 200)
    isLoading = false
    await Promise.all(loads)

    await endLeases(server.url, 'pgboss', name)
    const isHandled = (id: string) => seen.some((job) => job.id === id)
    await until(() => [...acknowledged].every(isHandled))
  })

  it('leaves nothing open after close', { timeout: 60_000 }, async () => {
    const server = await createPostgres(programs as string)
    onTestFinished(() => server.dispose())
    await server.start()
    const queue = create({ connectionString: server.url })
    work(queue, () => ({ deadLetter: 'no' }))
    await queue.push([jobOf('dead')])
    await queue.drain()
    await queue.close({ graceMs: 1000 })
    await expect(queue.deadLetters()).rejects.toMatchObject({ code: 'shutting_down' })
    const client = new pg.Client(server.url)
    await client.connect()
    const connections = async () => {
      const { rows } = await client.query(
        `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'hookline'`,
      )
      return rows[0].n
    }
    await until(async () => (await connections()) === 0)
    await client.end()
  })
})

/** A backoff may have to pass first. */
async function untilPushed(queue: Queue, job: Job): Promise<void> {
  await until(() =>
    queue.push([job]).then(
      () => true,
      () => false,
    ),
  )
}

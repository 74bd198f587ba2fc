import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import pg from 'pg'
import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { type PgBossQueueOptions, pgBossQueue } from '../../../src/queues-pg-boss.ts'
import type { Job, Queue } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { createProxy } from '../../support/postgres-proxy.ts'
import { jobOf, work } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { databaseUrl, useSchema } from './set-up.ts'

const away = { code: 'queue_unavailable', status: 503 }

const open: Queue[] = []
afterEach(async () => {
  for (const queue of open.splice(0)) await queue.close({ graceMs: 0 })
  errors.length = 0
})

async function openProxy() {
  const proxy = await createProxy(databaseUrl)
  onTestFinished(proxy.close)
  return proxy
}

const errors: unknown[] = []

function create(options: Partial<PgBossQueueOptions>): Queue {
  const onError = (error: unknown) => errors.push(error)
  const queue = pgBossQueue({ name: randomUUID(), pollMs: 50, onError, ...options })
  open.push(queue)
  return queue
}

describe('pg-boss, when the connection to PostgreSQL fails', needs('PostgreSQL'), () => {
  const schema = useSchema()

  it('starts in several processes at once, in a schema that is not there yet', async () => {
    const name = randomUUID()
    const queues = [1, 2, 3].map(() =>
      create({ name, connectionString: databaseUrl, schema: schema.name, timeoutMs: 10_000 }),
    )
    await Promise.all(queues.map((queue) => queue.push([jobOf()])))
    expect((await queues[0]?.counts())?.waiting).toBe(3)
  })

  it('a connection that answers nothing any more: refused in time, all that wait; work goes on afterwards', async () => {
    const proxy = await openProxy()
    const queue = create({
      connectionString: proxy.url,
      schema: schema.name,
      timeoutMs: 2_000,
      max: 1, // One that stays silent would be in the way of all that follows.
    })
    const seen = work(queue)
    await untilPushed(queue, jobOf()) // On a busy machine its start takes longer.
    await until(() => seen.length === 1)
    proxy.swallow(true)
    const pushes = Array.from({ length: 5 }, () => queue.push([jobOf()]))
    const late = new Promise((resolve) => setImmediate(resolve)).then(() => queue.push([jobOf()]))
    const large = [1, 2, 3].map(() => queue.push([{ ...jobOf(), body: new Uint8Array(3_000_000) }])) // No two in one insert.
    const refused = await Promise.allSettled([...pushes, late, ...large])
    expect(refused).toMatchObject(refused.map(() => ({ status: 'rejected', reason: away })))
    await until(() => errors.length > 0)
    expect(errors[0]).toMatchObject(away)
    proxy.swallow(false)
    await untilPushed(queue, jobOf('after'))
    await until(() => seen.some(({ body }) => String(body) === 'after'))
  })

  it('a table that is locked for long: what is refused is not stored later, and no claim is lost or counted', async () => {
    const queue = create({ connectionString: databaseUrl, schema: schema.name, timeoutMs: 2_000 })
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
      const seen = work(queue)
      await until(() => seen.length > 0)
      expect(seen[0]?.claimCount).toBe(1) // After a lease it would be 2.
      await queue.drain()
      expect((await queue.counts()).deadLetters).toBe(0)
    },
  )

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
})

/** A backoff may have to pass first. */
async function untilPushed(queue: Queue, job: Job): Promise<void> {
  await until(async () => (await Promise.allSettled([queue.push([job])]))[0].status === 'fulfilled')
}

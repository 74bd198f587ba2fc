import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type BullmqQueueOptions, bullmqQueue } from '../../src/queues/bullmq.ts'
import type { ClaimedJob, Outcome, Queue } from '../../src/queues/queue.ts'
import { freePort, hasRedisServer, openPassage, type PrivateRedis, privateRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const done: Outcome = { done: true }
const jobOf = () => ({ id: randomUUID(), body: Buffer.from('body') })
const unavailable = { code: 'queue_unavailable', status: 503 }
const open: Queue[] = []
const fail = () => expect.fail('it was not refused')

afterEach(async () => {
  for (const queue of open.splice(0)) await queue.close({ graceMs: 0 })
})

function openQueue(options: Partial<BullmqQueueOptions> & Pick<BullmqQueueOptions, 'connection'>): Queue {
  const queue = bullmqQueue({ name: randomUUID(), commandTimeoutMs: 300, ...options })
  open.push(queue)
  return queue
}

function work(queue: Queue, decide: (job: ClaimedJob) => Outcome | Promise<Outcome> = () => done) {
  const seen: ClaimedJob[] = []
  const handle = async (job: ClaimedJob) => {
    seen.push(job)
    return decide(job)
  }
  queue.work(handle, { concurrency: 10 })
  return seen
}

describe('without a Redis', () => {
  it('opens, refuses each call in time, and closes', async () => {
    const errors: unknown[] = []
    const connection = `redis://:hush-hush@127.0.0.1:${await freePort()}`
    const queue = openQueue({ connection, onError: (error) => errors.push(error) })
    work(queue)
    const drain = queue.drain()
    const calls = [() => queue.push([jobOf()]), queue.counts, queue.dead, () => queue.redrive('all')]
    for (const call of [...calls, () => queue.drop('all')]) {
      const began = performance.now()
      const error = await call().then(fail, (caught: unknown) => caught)
      expect(error).toMatchObject(unavailable)
      expect((error as Error).cause).toMatchObject({ code: 'ECONNREFUSED' })
      expect(inspect(error)).not.toContain('hush-hush')
      expect(performance.now() - began).toBeLessThan(2000)
    }
    expect(errors).not.toEqual([])
    await queue.close({ graceMs: 60_000 })
    await drain
    await expect(queue.push([jobOf()])).rejects.toMatchObject({ code: 'shutting_down' })
  })

  it('says so when one listens and does not answer', async () => {
    const port = await freePort()
    const { createServer } = await import('node:net')
    const server = createServer(() => {}).listen(port, '127.0.0.1')
    const queue = openQueue({ connection: { port } })
    const pushes = await Promise.allSettled([queue.push([jobOf()]), queue.push([jobOf()])])
    expect(pushes).toMatchObject([{ reason: unavailable }, { reason: unavailable }])
    server.close()
  })
})

describe.skipIf(!hasRedisServer)('with a redis-server of its own', () => {
  let redis: PrivateRedis

  beforeAll(async () => {
    redis = await privateRedis()
    await redis.start()
  })

  afterAll(() => redis.dispose())

  it('killed and started in mid-load: nothing that was acknowledged is lost, and all goes on by itself', async () => {
    const queue = openQueue({ connection: redis.url, leaseMs: 400 })
    const handled = new Set<string>()
    work(queue, ({ id, deliveries }) => {
      if (deliveries === 1 && id < '4') return { retryAt: Date.now() + 50 }
      handled.add(id)
      return done
    })
    const [acknowledged, refused] = [new Set<string>(), [] as unknown[]]
    let stop = false
    const load = Array.from({ length: 20 }, async () => {
      while (!stop) {
        const job = jobOf()
        await queue.push([job]).then(
          () => acknowledged.add(job.id),
          (error: unknown) => refused.push(error),
        )
      }
    })
    await until(() => acknowledged.size > 500 && handled.size > 100)
    await redis.kill()
    const before = acknowledged.size
    await until(() => refused.length >= 20)
    for (const error of refused) expect(error).toMatchObject(unavailable)
    await redis.start()
    await until(() => acknowledged.size > before + 500)
    stop = true
    await Promise.all(load)
    await until(() => [...acknowledged].every((id) => handled.has(id)))
    await queue.drain()
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
  }, 30_000)

  it('cut off in mid-push: what was acknowledged is there, and what was refused can be pushed again', async () => {
    const passage = await openPassage(redis.port)
    const queue = openQueue({ connection: `redis://127.0.0.1:${passage.port}` })
    const jobs = Array.from({ length: 300 }, jobOf)
    await queue.push([jobOf()])
    const pushes = jobs.map((job) => queue.push([job]))
    await Promise.resolve()
    passage.cut()
    const results = await Promise.allSettled(pushes)
    for (const result of results) if (result.status === 'rejected') expect(result.reason).toMatchObject(unavailable)
    const acknowledged = results.filter(({ status }) => status === 'fulfilled').length
    expect((await queue.counts()).waiting).toBeGreaterThanOrEqual(1 + acknowledged)
    await queue.push(jobs)
    expect((await queue.counts()).waiting).toBe(1 + jobs.length)
    await queue.close({ graceMs: 0 })
    await passage.close()
  })

  it('a process that is killed: its job comes back, counted, with the time it was first handed out', async () => {
    const name = randomUUID()
    const queue = openQueue({ name, connection: redis.url, leaseMs: 500 })
    const job = jobOf()
    await queue.push([job])
    const child = await runUntil(
      'begun',
      `bullmqQueue({ name: '${name}', connection: '${redis.url}', leaseMs: 500 }).work(async (job) => {
        setTimeout(() => console.log('begun ' + job.firstAt), 50)
        return new Promise(() => {})
      }, { concurrency: 1 })`,
    )
    child.process.kill('SIGKILL')
    const seen = work(queue)
    await until(() => seen.length === 1)
    expect(seen[0]).toMatchObject({ id: job.id, deliveries: 2, firstAt: Number(child.output.split(' ')[1]) })
  }, 20_000)

  it('closed: the process ends', async () => {
    const child = await runUntil(
      'closed',
      `const queue = bullmqQueue({ name: '${randomUUID()}', connection: '${redis.url}' })
      queue.work(async () => ({ done: true }), { concurrency: 2 })
      await queue.push([{ id: crypto.randomUUID(), body: new Uint8Array(1) }])
      await queue.drain()
      await queue.close({ graceMs: 1000 })
      await queue.counts()
      console.log('closed')`,
    )
    const closedAt = performance.now()
    await until(() => child.process.exitCode !== null)
    expect(performance.now() - closedAt).toBeLessThan(1500)
    expect([child.process.exitCode, child.errors]).toEqual([0, ''])
  }, 20_000)

  it('closed while it is away: the process ends, too', async () => {
    const away = await privateRedis()
    await away.start()
    const child = await runUntil(
      'working',
      `const queue = bullmqQueue({ name: '${randomUUID()}', connection: '${away.url}', commandTimeoutMs: 300, onError() {} })
      queue.work(() => new Promise(() => {}), { concurrency: 2 })
      await queue.push([{ id: crypto.randomUUID(), body: new Uint8Array(1) }])
      console.log('working')
      process.stdin.once('data', async () => {
        process.stdin.unref()
        await queue.close({ graceMs: 100 })
        console.log('closed')
      })`,
    )
    await away.dispose()
    child.process.stdin?.write('close\n')
    await until(() => child.output.includes('closed'))
    const closedAt = performance.now()
    await until(() => child.process.exitCode !== null)
    expect(performance.now() - closedAt).toBeLessThan(1500)
    expect([child.process.exitCode, child.errors]).toEqual([0, ''])
  }, 20_000)

  it('with a wrong password: says so, and does not tell it', async () => {
    const guarded = await privateRedis('--requirepass', 'right')
    await guarded.start()
    const errors: unknown[] = []
    const connection = `redis://:wrong-one@127.0.0.1:${guarded.port}`
    const queue = openQueue({ connection, onError: (error) => errors.push(error) })
    work(queue)
    const error = await queue.push([jobOf()]).then(fail, (caught: unknown) => caught)
    expect(error).toMatchObject(unavailable)
    expect(inspect((error as Error).cause)).toMatch(/WRONGPASS|NOAUTH/)
    await until(() => errors.length > 0)
    expect(inspect([error, ...errors], { depth: 9 })).not.toContain('wrong-one')
    await guarded.dispose()
  })

  it('that has no room left: queue_unavailable, and the jobs that are in stay', async () => {
    const small = await privateRedis('--maxmemory', '4mb')
    await small.start()
    const queue = openQueue({ connection: small.url, commandTimeoutMs: 3000 })
    const job = { ...jobOf(), body: Buffer.alloc(1024 * 1024) }
    await queue.push([jobOf()])
    const pushes = Array.from({ length: 5 }, () => queue.push([{ ...job, id: randomUUID() }]))
    const results = await Promise.allSettled(pushes)
    const refused = results.filter((result) => result.status === 'rejected')
    expect(refused.length).toBeGreaterThan(0)
    for (const { reason } of refused) expect(reason).toMatchObject({ ...unavailable, cause: { name: 'ReplyError' } })
    expect(inspect(refused[0], { depth: 9 }).length).toBeLessThan(5000)
    const { waiting } = await queue.counts()
    expect(waiting).toBe(1 + results.length - refused.length)
    await small.dispose()
  })

  it('over a connection that is somebody else’s: leaves it open', async () => {
    const connection = new Redis(redis.url)
    const queue = openQueue({ connection })
    const seen = work(queue)
    await queue.push([jobOf()])
    await queue.drain()
    await queue.close({ graceMs: 0 })
    await delay(0)
    expect(await connection.ping()).toBe('PONG')
    expect([seen.length, connection.listenerCount('error')]).toEqual([1, 0])
    connection.disconnect()
  })
})

/** Runs a program in a process of its own until it writes a line that begins so. */
async function runUntil(word: string, program: string) {
  const module = fileURLToPath(new URL('../../src/queues/bullmq.ts', import.meta.url))
  const text = `import { bullmqQueue } from '${module}'\n${program}`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', text])
  const run = { process: child as ChildProcess, output: '', errors: '' }
  child.stdout.on('data', (data) => {
    run.output += data
  })
  child.stderr.on('data', (data) => {
    run.errors += data
  })
  await until(() => run.output.includes(`${word}`) || child.exitCode !== null)
  expect(run.output, run.errors).toContain(word)
  return run
}

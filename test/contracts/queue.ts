/** The contract of a queue: whatever keeps the jobs, the same things happen to them. */

import { randomUUID } from 'node:crypto'
import { afterEach, describe, expect, it } from 'vitest'
import type { ClaimedJob, HandleJob, Job, Outcome, Queue } from '../../src/queues/queue.ts'
import { until } from '../support/until.ts'

/** A queue to try, fresh and empty, and what is true of it. */
export interface TestedQueue {
  readonly queue: Queue
  /** The time by the queue's clock, in milliseconds since the epoch. */
  now(): number
  /** Lets time pass for the queue, and what is due then begin. */
  advance(ms: number): Promise<void>
  /** Whether its jobs are still there when the process has ended. */
  readonly outlivesProcess: boolean
  /** How long the id of a job that is done stays known, in milliseconds. */
  readonly knownForMs: number
  /** Opens another queue over the same jobs, as another process would. For those that outlive the process. */
  another?(): Queue | Promise<Queue>
  /** Lets a queue by a manual clock look for what others put in. */
  tick?(): Promise<void>
  /** Cleans up after the queue was closed. */
  dispose?(): Promise<void>
}

const done: Outcome = { done: true }
const bytes = (text: string) => new TextEncoder().encode(text)
const text = (body: Uint8Array | undefined) => body && new TextDecoder().decode(body)
const jobOf = (body: string, more: Partial<Job> = {}): Job => ({ id: randomUUID(), body: bytes(body), ...more })

export function testQueue(name: string, create: () => TestedQueue | Promise<TestedQueue>): void {
  const open: TestedQueue[] = []
  afterEach(async () => {
    for (const { queue, dispose } of open.splice(0)) {
      await queue.close({ graceMs: 0 })
      await dispose?.()
    }
  })

  async function setUp() {
    const tested = await create()
    open.push(tested)
    return { ...tested, ...tools(tested.queue) }
  }

  describe(`${name}: push`, () => {
    it('hands a job out as it was put in, for the first time, now', async () => {
      const { queue, now, work } = await setUp()
      const seen = work(() => done)
      const job = jobOf('\u0000 é 🎉')
      const before = now()
      await queue.push([job])
      await queue.drain()
      expect(seen).toHaveLength(1)
      expect(seen[0]).toMatchObject({ id: job.id, deliveries: 1, state: undefined })
      expect(text(seen[0]?.body)).toBe('\u0000 é 🎉')
      expect(seen[0]?.firstAt).toBeGreaterThanOrEqual(before)
      expect(seen[0]?.firstAt).toBeLessThanOrEqual(now())
    })

    it('takes bytes that are no text, and none at all', async () => {
      const { queue, work } = await setUp()
      const seen = work(() => done)
      const binary = Uint8Array.from({ length: 256 }, (_, index) => index)
      await queue.push([
        { id: randomUUID(), body: binary },
        { id: randomUUID(), body: new Uint8Array() },
      ])
      await queue.drain()
      expect(seen.map(({ body }) => [...body])).toEqual([[...binary], []])
    })

    it('of no job puts nothing in', async () => {
      const { queue } = await setUp()
      await queue.push([])
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })

    it('keeps what is put in before somebody works', async () => {
      const { queue, work } = await setUp()
      await queue.push([jobOf('a'), jobOf('b')])
      expect(await queue.counts()).toMatchObject({ waiting: 2, active: 0, dead: 0 })
      const seen = work(() => done)
      await queue.drain()
      expect(bodiesOf(seen)).toEqual(['a', 'b'])
    })

    it.each<[string, (tested: Tools & TestedQueue) => Promise<readonly ClaimedJob[]>]>([
      ['waits', async () => []],
      [
        'is dead',
        async ({ queue, work }) =>
          drained(
            queue,
            work(() => ({ dead: 'no' })),
          ),
      ],
      [
        'is done',
        async ({ queue, work }) =>
          drained(
            queue,
            work(() => done),
          ),
      ],
      [
        'is handed out',
        async ({ work }) => {
          const seen = work(() => new Promise(() => {}))
          await until(() => seen.length === 1)
          return seen
        },
      ],
    ])('leaves a job alone whose id %s', async (_what, become) => {
      const tested = await setUp()
      const job = jobOf('first')
      await tested.queue.push([job])
      const seen = await become(tested)
      const counts = await tested.queue.counts()
      await tested.queue.push([{ ...job, body: bytes('second') }])
      await tested.advance(0)
      expect(await tested.queue.counts()).toEqual(counts)
      expect(bodiesOf(seen)).not.toContain('second')
    })

    it('puts an id that is there twice in once', async () => {
      const { queue, work } = await setUp()
      const job = jobOf('first')
      await queue.push([job, { ...job, body: bytes('second') }])
      const seen = work(() => done)
      await queue.drain()
      expect(bodiesOf(seen)).toEqual(['first'])
    })

    it('puts in those that are new, beside one that is known', async () => {
      const { queue } = await setUp()
      const job = jobOf('known')
      await queue.push([job])
      await queue.push([job, jobOf('new')])
      expect((await queue.counts()).waiting).toBe(2)
    })

    it('knows the id of a job that is done for a while, and no longer', async () => {
      const { queue, work, advance, knownForMs } = await setUp()
      const seen = work(() => done)
      const job = jobOf('again')
      await queue.push([job])
      await queue.drain()
      await advance(knownForMs - 1000)
      await queue.push([job])
      await queue.drain()
      expect(seen).toHaveLength(1)
      await advance(1000)
      await queue.push([job])
      await queue.drain()
      expect(seen.map(({ deliveries }) => deliveries)).toEqual([1, 1])
    })

    it.each([
      ['id', { id: 'order-1' }],
      ['id', { id: 5 }],
      ['id', { id: 'ABCDEF01-2345-4789-8ABC-DEF012345678' }],
      ['id', { id: `${randomUUID()}\n` }],
      ['body', { body: 'text' }],
      ['body', { body: undefined }],
      ['notBefore', { notBefore: Number.NaN }],
      ['notBefore', { notBefore: '2026-01-15' }],
    ])('refuses a wrong %s and all that is beside it: %j', async (field, wrong) => {
      const { queue } = await setUp()
      const refused = queue.push([jobOf('good'), { ...jobOf('bad'), ...wrong } as Job])
      await expect(refused).rejects.toThrow(TypeError)
      await expect(refused).rejects.toThrow(field)
      expect((await queue.counts()).waiting).toBe(0)
    })

    it.each([undefined, {}, [undefined]])('refuses what is no list of jobs: %j', async (jobs) => {
      const { queue } = await setUp()
      await expect(queue.push(jobs as never)).rejects.toThrow(TypeError)
    })

    it('after close: shutting_down', async () => {
      const { queue } = await setUp()
      await queue.close({ graceMs: 0 })
      await expect(queue.push([jobOf('late')])).rejects.toMatchObject({ code: 'shutting_down', status: 503 })
    })
  })

  describe(`${name}: work`, () => {
    it('never hands out more at a time than it was told, and no less when there are more', async () => {
      const { queue, work } = await setUp()
      let [running, most] = [0, 0]
      const held = Promise.withResolvers<void>()
      const seen = work(async () => {
        running += 1
        most = Math.max(most, running)
        await held.promise
        running -= 1
        return done
      }, 3)
      await queue.push(Array.from({ length: 20 }, (_, index) => jobOf(`${index}`)))
      await until(() => seen.length === 3)
      expect(await queue.counts()).toMatchObject({ waiting: 17, active: 3, dead: 0 })
      held.resolve()
      await queue.drain()
      expect([most, seen.length]).toEqual([3, 20])
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })

    it('hands out in the order of the times when jobs came due', async () => {
      const { queue, now, advance, work } = await setUp()
      await queue.push([jobOf('third', { notBefore: now() + 3000 }), jobOf('first', { notBefore: now() + 1000 })])
      await queue.push([jobOf('second', { notBefore: now() + 2000 }), jobOf('zeroth')])
      await advance(3000)
      await queue.push([jobOf('fourth')])
      const seen = work(() => done, 1)
      await queue.drain()
      expect(bodiesOf(seen)).toEqual(['zeroth', 'first', 'second', 'third', 'fourth'])
    })

    it('hands nothing out before its time', async () => {
      const { queue, now, advance, work } = await setUp()
      const seen = work(() => done)
      await queue.push([jobOf('later', { notBefore: now() + 5000 })])
      await advance(4000)
      expect(seen).toEqual([])
      await advance(1000)
      await until(() => seen.length === 1)
    })

    it('hands a job out that is due sooner than what it waits for', async () => {
      const { queue, now, advance, work } = await setUp()
      const seen = work(() => done)
      await queue.push([jobOf('later', { notBefore: now() + 60_000 })])
      await advance(0)
      await queue.push([jobOf('sooner', { notBefore: now() + 5000 })])
      await advance(5000)
      await until(() => seen.length === 1)
      expect(bodiesOf(seen)).toEqual(['sooner'])
    })

    it('retries at the time it was told, counts, and keeps the first time and the state', async () => {
      const { queue, now, advance, work } = await setUp()
      const outcomes: Outcome[] = [{ retryAt: now() + 5000, state: bytes('one') }, { retryAt: now() + 9000 }, done]
      const seen = work(() => outcomes.shift() as Outcome)
      await queue.push([jobOf('job')])
      await queue.drain()
      expect(await queue.counts()).toMatchObject({ waiting: 1, active: 0, dead: 0 })
      await advance(4000)
      expect(seen).toHaveLength(1)
      await advance(1000)
      await until(() => seen.length === 2)
      await advance(4000)
      await until(() => seen.length === 3)
      await queue.drain()
      expect(seen.map(({ deliveries, state }) => [deliveries, text(state)])).toEqual([
        [1, undefined],
        [2, 'one'],
        [3, undefined],
      ])
      expect(new Set(seen.map(({ firstAt }) => firstAt)).size).toBe(1)
      expect(new Set(seen.map(({ id }) => id)).size).toBe(1)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })

    it('retries what is told a time that has passed behind what is due already', async () => {
      const { queue, now, work } = await setUp()
      const seen = work(
        (job) => (job.deliveries === 1 && text(job.body) === 'a' ? { retryAt: now() - 60_000 } : done),
        1,
      )
      await queue.push([jobOf('a'), jobOf('b'), jobOf('c')])
      await queue.drain()
      expect(bodiesOf(seen)).toEqual(['a', 'b', 'c', 'a'])
    })

    it('leaves the process its turn while a job is retried at once for ever', async () => {
      const { queue, now, work } = await setUp()
      let stop = false
      work(() => (stop ? done : { retryAt: now() }))
      await queue.push([jobOf('stubborn')])
      await new Promise((resolve) => setImmediate(resolve))
      stop = true
      await queue.drain()
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })

    it.each<[string, HandleJob]>([
      ['rejects', () => Promise.reject(new Error('no'))],
      [
        'throws',
        () => {
          throw new Error('no')
        },
      ],
      ...[
        undefined,
        null,
        'done',
        {},
        { done: false },
        { retryAt: Number.NaN },
        { dead: 5 },
        { dead: '', state: 's' },
      ].map((junk): [string, HandleJob] => [`resolves to ${JSON.stringify(junk)}`, async () => junk as never]),
    ])('a handler that %s: retried a little later, with the state it had', async (_how, fail) => {
      const { queue, now, advance, work } = await setUp()
      const seen = work((job, signal) => {
        if (job.deliveries === 1) return { retryAt: now(), state: bytes('kept') }
        return job.deliveries < 4 ? fail(job, signal) : done
      })
      await queue.push([jobOf('job')])
      await queue.drain()
      for (const [afterMs, deliveries] of [
        [2000, 3],
        [4000, 4],
      ] as const) {
        await advance(afterMs - 1000)
        expect(seen).toHaveLength(deliveries - 1)
        await advance(1000)
        await until(() => seen.length === deliveries)
        await queue.drain()
      }
      expect(seen.map(({ state }) => text(state))).toEqual([undefined, 'kept', 'kept', 'kept'])
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
    })

    it('a handler that rejects the first time: retried after a second', async () => {
      const { queue, advance, work } = await setUp()
      const seen = work((job) => (job.deliveries === 1 ? Promise.reject(new Error('no')) : done))
      await queue.push([jobOf('job')])
      await queue.drain()
      expect(await queue.counts()).toMatchObject({ waiting: 1, active: 0, dead: 0 })
      await advance(1000)
      await until(() => seen.length === 2)
      expect(seen[1]?.state).toBeUndefined()
    })

    it('twice: a TypeError', async () => {
      const { queue, work } = await setUp()
      work(() => done)
      expect(() => queue.work(async () => done, { concurrency: 1 })).toThrow(TypeError)
    })

    it('after close: a TypeError', async () => {
      const { queue } = await setUp()
      await queue.close({ graceMs: 0 })
      expect(() => queue.work(async () => done, { concurrency: 1 })).toThrow(TypeError)
    })

    it.each([
      ['handle', undefined, { concurrency: 1 }],
      ['concurrency', async () => done, undefined],
      ['concurrency', async () => done, { concurrency: 0 }],
      ['concurrency', async () => done, { concurrency: 1.5 }],
      ['concurrency', async () => done, { concurrency: Number.POSITIVE_INFINITY }],
    ])('refuses a wrong %s', async (what, handle, options) => {
      const { queue } = await setUp()
      expect(() => queue.work(handle as never, options as never)).toThrow(TypeError)
      expect(() => queue.work(handle as never, options as never)).toThrow(what)
    })
  })

  describe(`${name}: counts`, () => {
    it('say since when the job is due that is due the longest', async () => {
      const { queue, now, advance, work } = await setUp()
      expect((await queue.counts()).oldestDueAt).toBeUndefined()
      const start = now()
      await queue.push([jobOf('later', { notBefore: start + 5000 })])
      expect((await queue.counts()).oldestDueAt).toBeUndefined()
      await advance(5000)
      await queue.push([jobOf('now')])
      const { oldestDueAt = 0 } = await queue.counts()
      expect(Math.abs(oldestDueAt - start - 5000)).toBeLessThan(1000)
      await advance(60_000)
      expect((await queue.counts()).oldestDueAt).toBe(oldestDueAt)
      work(() => done)
      await queue.drain()
      expect(await queue.counts()).toEqual({ waiting: 0, active: 0, dead: 0, oldestDueAt: undefined })
    })
  })

  describe(`${name}: drain`, () => {
    it('resolves at once when there is nothing, also while nobody works', async () => {
      const { queue } = await setUp()
      await queue.drain()
    })

    it('waits for what is due and what is handed out, not for what waits for its time', async () => {
      const { queue, now, advance, work } = await setUp()
      const held = Promise.withResolvers<Outcome>()
      let drained = false
      await queue.push([jobOf('due'), jobOf('later', { notBefore: now() + 60_000 })])
      const drain = queue.drain().then(() => {
        drained = true
      })
      await advance(0)
      expect(drained).toBe(false)
      const seen = work(() => held.promise)
      await until(() => seen.length === 1)
      await advance(0)
      expect(drained).toBe(false)
      held.resolve(done)
      await drain
      expect(await queue.counts()).toMatchObject({ waiting: 1, active: 0, dead: 0 })
    })

    it('resolves when the queue is closed before or meanwhile', async () => {
      const { queue } = await setUp()
      await queue.push([jobOf('nobody works')])
      const drain = queue.drain()
      await queue.close({ graceMs: 0 })
      await drain
      await queue.drain()
    })
  })

  describe(`${name}: the dead`, () => {
    async function setUpDead(...bodies: string[]) {
      const tested = await setUp()
      const jobs = bodies.map((body) => jobOf(body))
      let outcome = (job: ClaimedJob): Outcome => ({ dead: `${text(job.body)} died`, state: bytes('why') })
      const seen = tested.work((job) => outcome(job), 1)
      await tested.queue.push(jobs)
      await tested.queue.drain()
      const decide = (next: typeof outcome) => {
        outcome = next
      }
      return { ...tested, seen, decide, ids: jobs.map(({ id }) => id) }
    }

    it('are listed with reason, state and time, the longest dead first', async () => {
      const { queue, now, ids } = await setUpDead('a', 'b')
      const dead = await queue.dead()
      expect(dead.map(({ id }) => id)).toEqual(ids)
      expect(dead.map(({ body, reason, state }) => [text(body), reason, text(state)])).toEqual([
        ['a', 'a died', 'why'],
        ['b', 'b died', 'why'],
      ])
      for (const { diedAt } of dead) expect(now() - diedAt).toBeLessThan(60_000)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 2 })
    })

    it('keep no state when they were given none', async () => {
      const { queue, now, work } = await setUp()
      work((job) => (job.deliveries === 1 ? { retryAt: now(), state: bytes('old') } : { dead: 'no' }))
      await queue.push([jobOf('a')])
      await queue.drain()
      expect((await queue.dead())[0]?.state).toBeUndefined()
    })

    it('are not handed out again by themselves', async () => {
      const { seen, advance } = await setUpDead('a')
      await advance(60 * 60_000)
      expect(seen).toHaveLength(1)
    })

    it('come in pages', async () => {
      const { queue, ids } = await setUpDead('a', 'b', 'c', 'd', 'e')
      const [, b = '', , d = '', e = ''] = ids
      expect(bodiesOf(await queue.dead({ limit: 2 }))).toEqual(['a', 'b'])
      expect(bodiesOf(await queue.dead({ after: b, limit: 2 }))).toEqual(['c', 'd'])
      expect(bodiesOf(await queue.dead({ after: d, limit: 2 }))).toEqual(['e'])
      expect(await queue.dead({ after: e })).toEqual([])
      expect(bodiesOf(await queue.dead({ after: b }))).toEqual(['c', 'd', 'e'])
    })

    it('come from the first on after one that is there no more', async () => {
      const { queue, ids } = await setUpDead('a', 'b', 'c')
      await queue.drop([ids[1] ?? ''])
      expect(bodiesOf(await queue.dead({ after: ids[1] ?? '' }))).toEqual(['a', 'c'])
    })

    it('come a hundred at a time when nothing else is said', async () => {
      const { queue } = await setUpDead(...Array.from({ length: 101 }, (_, index) => `${index}`))
      expect(await queue.dead()).toHaveLength(100)
      expect(await queue.dead({ limit: 1000 })).toHaveLength(101)
    })

    it.each([
      ['limit', { limit: 0 }],
      ['limit', { limit: 1.5 }],
      ['after', { after: 'the last' }],
    ])('refuse a wrong %s: %j', async (option, page) => {
      const { queue } = await setUp()
      await expect(queue.dead(page as never)).rejects.toThrow(TypeError)
      await expect(queue.dead(page as never)).rejects.toThrow(option)
    })

    it('are re-driven as if they were new', async () => {
      const { queue, seen, decide, advance, now, ids } = await setUpDead('a', 'b')
      decide(() => done)
      await advance(5000)
      const before = now()
      expect(await queue.redrive([ids[1] ?? '', ids[1] ?? '', randomUUID()])).toBe(1)
      await until(() => seen.length === 3)
      await queue.drain()
      expect(seen.at(-1)).toMatchObject({ id: ids[1], deliveries: 1, state: undefined })
      expect(text(seen.at(-1)?.body)).toBe('b')
      expect(seen.at(-1)?.firstAt).toBeGreaterThanOrEqual(before)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 1 })
    })

    it('are re-driven all at once', async () => {
      const { queue, seen, decide } = await setUpDead('a', 'b', 'c')
      decide(() => done)
      expect(await queue.redrive('all')).toBe(3)
      await queue.drain()
      expect(bodiesOf(seen.slice(3)).sort()).toEqual(['a', 'b', 'c'])
      expect(await queue.redrive('all')).toBe(0)
    })

    it('can die again', async () => {
      const { queue, ids } = await setUpDead('a', 'b')
      await queue.redrive([ids[0] ?? ''])
      await queue.drain()
      expect(bodiesOf(await queue.dead())).toEqual(['b', 'a'])
    })

    it('are not re-driven after close: shutting_down', async () => {
      const { queue } = await setUpDead('a')
      await queue.close({ graceMs: 0 })
      await expect(queue.redrive('all')).rejects.toMatchObject({ code: 'shutting_down' })
    })

    it('are dropped and forgotten', async () => {
      const { queue, ids } = await setUpDead('a', 'b', 'c')
      expect(await queue.drop([ids[0] ?? '', ids[0] ?? '', randomUUID()])).toBe(1)
      expect(bodiesOf(await queue.dead())).toEqual(['b', 'c'])
      expect(await queue.drop('all')).toBe(2)
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 0 })
      await queue.push([{ id: ids[0] ?? '', body: bytes('a') }])
      await queue.drain()
      expect((await queue.counts()).dead).toBe(1)
    })

    it.each(['redrive', 'drop'] as const)('%s refuses what is no list of ids', async (call) => {
      const { queue } = await setUp()
      for (const wrong of [undefined, 'some', randomUUID(), ['x'], [undefined]]) {
        await expect(queue[call](wrong as never)).rejects.toThrow(TypeError)
        await expect(queue[call](wrong as never)).rejects.toThrow('ids')
      }
    })
  })

  describe(`${name}: close`, () => {
    it('of an empty queue ends at once, whatever the grace', async () => {
      const { queue, work } = await setUp()
      work(() => done)
      expect(await queue.close({ graceMs: 60_000 })).toEqual([])
    })

    it('waits for what runs, and aborts nothing then', async () => {
      const { queue, work, advance } = await setUp()
      const held = Promise.withResolvers<Outcome>()
      const signals: AbortSignal[] = []
      const seen = work((_job, signal) => {
        signals.push(signal)
        return held.promise
      })
      await queue.push([jobOf('running')])
      await until(() => seen.length === 1)
      let closed = false
      const close = queue.close({ graceMs: 5000 }).then((left) => {
        closed = true
        return left
      })
      await advance(4000)
      expect([closed, signals[0]?.aborted]).toEqual([false, false])
      held.resolve(done)
      expect(await close).toEqual([])
    })

    it('aborts the signal when the grace is over, and hears what obeys it', async () => {
      const { queue, work, advance, outlivesProcess } = await setUp()
      const seen = work(
        (_job, signal) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve({ dead: 'aborted' }))),
        1,
      )
      await queue.push([jobOf('obeys'), jobOf('is not begun')])
      await until(() => seen.length === 1)
      const close = queue.close({ graceMs: 5000 })
      await advance(4999)
      expect((await queue.counts()).active).toBe(1)
      await advance(1)
      expect(bodiesOf(await close)).toEqual(outlivesProcess ? [] : ['is not begun'])
      expect(bodiesOf(seen)).toEqual(['obeys'])
      expect(await queue.dead()).toMatchObject([{ reason: 'aborted' }])
    })

    it('aborts at once without a grace', async () => {
      const { queue, work } = await setUp()
      let aborted = false
      const seen = work((_job, signal) => {
        signal.addEventListener('abort', () => {
          aborted = true
        })
        return new Promise(() => {})
      })
      await queue.push([jobOf('deaf')])
      await until(() => seen.length === 1)
      await queue.close({ graceMs: 0 })
      expect(aborted).toBe(true)
    })

    it('hands nothing out afterwards', async () => {
      const { queue, now, work, advance } = await setUp()
      const seen = work(() => done)
      await queue.push([jobOf('later', { notBefore: now() + 5000 })])
      await queue.close({ graceMs: 1000 })
      await advance(10_000)
      expect(seen).toEqual([])
    })

    it('again waits for the same end', async () => {
      const { queue, work, advance } = await setUp()
      const seen = work(() => new Promise(() => {}))
      await queue.push([jobOf('deaf')])
      await until(() => seen.length === 1)
      const [first, second] = [queue.close({ graceMs: 5000 }), queue.close({ graceMs: 0 })]
      await advance(5000)
      expect(await second).toEqual(await first)
    })

    it.each([undefined, {}, { graceMs: -1 }, { graceMs: 0.5 }, { graceMs: 2 ** 31 }])('refuses %j', async (options) => {
      const { queue, work } = await setUp()
      await expect(queue.close(options as never)).rejects.toThrow('graceMs')
      work(() => done) // It is open still.
    })

    it('returns what would be lost with the process', async () => {
      const { queue, now, work, advance, outlivesProcess } = await setUp()
      const seen = work((job) => (text(job.body) === 'dies' ? { dead: 'no' } : new Promise(() => {})), 2)
      const running = jobOf('running')
      const later = jobOf('later', { notBefore: now() + 60_000 })
      const due = jobOf('due')
      await queue.push([jobOf('dies'), running, later, jobOf('runs too'), due])
      await until(() => seen.length === 3)
      const close = queue.close({ graceMs: 1000 })
      await advance(1000)
      const left = await close
      expect(bodiesOf(left)).toEqual(outlivesProcess ? [] : ['running', 'later', 'runs too', 'due'])
      if (outlivesProcess) return
      expect([left[0], left[1], left[3]]).toEqual([running, later, due])
      expect(await queue.counts()).toMatchObject({ waiting: 0, active: 0, dead: 1 })
    })

    it('goes on with what is due, when that would be lost', async () => {
      const { queue, work, advance, outlivesProcess } = await setUp()
      const held = Promise.withResolvers<Outcome>()
      const seen = work(() => held.promise, 1)
      await queue.push([jobOf('a'), jobOf('b'), jobOf('c')])
      await until(() => seen.length === 1)
      const close = queue.close({ graceMs: 5000 })
      await advance(0)
      held.resolve(done)
      expect(await close).toEqual([])
      expect(bodiesOf(seen)).toEqual(outlivesProcess ? ['a'] : ['a', 'b', 'c'])
    })
  })
}

interface Tools {
  /** Works on the queue; what was handed out so far is in the list. */
  work(decide: (job: ClaimedJob, signal: AbortSignal) => Outcome | Promise<Outcome>, concurrency?: number): ClaimedJob[]
}

function tools(queue: Queue): Tools {
  return {
    work(decide, concurrency = 10) {
      const seen: ClaimedJob[] = []
      queue.work(
        async (job, signal) => {
          seen.push(job)
          return decide(job, signal)
        },
        { concurrency },
      )
      return seen
    },
  }
}

async function drained<T>(queue: Queue, seen: T): Promise<T> {
  await queue.drain()
  return seen
}

function bodiesOf(jobs: readonly { readonly body: Uint8Array }[]) {
  return jobs.map(({ body }) => text(body))
}

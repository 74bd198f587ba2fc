/** What is left of a user in PostgreSQL when a queue has forgotten them. */

import { describe, expect, it } from 'vitest'
import type { StoredJob } from '../../../src/queues/api.ts'
import { needs } from '../../support/needs.ts'
import { complete, jobOf } from '../../support/queues.ts'
import { until } from '../../support/until.ts'
import { useVirtualBoss } from './set-up.ts'

describe('what a queue on pg-boss keeps of a user whom it forgets', needs('PostgreSQL'), () => {
  const server = useVirtualBoss()
  const { setUp } = server
  const isOfAda = ({ body }: StoredJob) => Buffer.from(body).includes('ada')

  async function everything(): Promise<string> {
    const { name, run } = server.schema
    const tables = await run('SELECT tablename AS name FROM pg_tables WHERE schemaname = $1', [name])
    return JSON.stringify(await Promise.all(tables.map(({ name }) => run(`SELECT t::text FROM schema.${name} AS t`))))
  }

  const trace = (text: string) => Buffer.from(text).toString('base64').slice(0, -4)

  it('keeps nothing of a body, of a retry state or of a reason, also of complete jobs', async () => {
    const { queue, work, now } = setUp()
    const retryState = Buffer.from('why: ada')
    const seen = work(({ body }) => {
      if (`${body}`.endsWith('done')) return complete
      if (`${body}`.endsWith('fails')) return { deadLetter: 'reason: ada', retryState }
      return { retryAt: new Date(now() + 60_000), retryState }
    })
    await queue.push(['ada is done', 'ada fails', 'ada waits', 'bob is done', 'bob waits'].map((body) => jobOf(body)))
    await until(() => seen.length === 5)
    await queue.drain()
    queue.pause()
    await queue.push([jobOf('ada is due'), { ...jobOf('ada is later'), notBefore: new Date(now() + 60_000) }])
    const traces = ['ada is done', 'ada fails', 'ada waits', 'ada is due', 'ada is later', 'reason: ada']
    const before = await everything()
    for (const text of traces) expect(before).toContain(trace(text))
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 5, active: 0 })
    const after = await everything()
    for (const text of traces) expect(after).not.toContain(trace(text))
    expect(after).toContain(trace('bob is done'))
    expect(after).toContain(trace('bob waits'))
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 0 })
  })

  it('knows the id of a complete job still, for the dedupe window', async () => {
    const dedupeWindowMs = 60_000
    const { queue, work, boss, name, advance } = setUp({ dedupeWindowMs })
    const seen = work(() => complete)
    const job = jobOf('ada')
    await queue.push([job])
    await until(() => seen.length === 1)
    await queue.drain()
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
    await queue.push([job])
    await queue.drain()
    expect(seen).toHaveLength(1)
    await advance(dedupeWindowMs + 1000)
    await boss.supervise(name)
    await queue.push([job])
    await until(() => seen.length === 2)
    await queue.close({ graceMs: 1000 })
  })

  it('misses none of the jobs that were pushed together, while they are handled', async () => {
    const { store } = server.createStore()
    const pushed = Array.from({ length: 500 }, (_, index) => jobOf(`${index}`))
    await store.push(pushed)
    const listed = new Set<string>()
    for await (const jobs of store.jobs()) {
      for (const { id } of jobs) listed.add(id)
      const claims = await store.claim(500)
      const retryAt = new Date(server.virtual.now() + 60_000)
      const last = claims.find(({ id }) => id === jobs.at(-1)?.id) // Its row is where the next page begins.
      if (last !== undefined) await store.finish(last, { retryAt })
      await store.release(
        claims.filter((claim) => claim !== last),
        { wereHandled: false },
      )
    }
    expect(listed).toEqual(new Set(pushed.map(({ id }) => id)))
    await store.close()
  }, 60_000)

  it('shares the work with others that do the same', async () => {
    const { queue, boss, name } = setUp()
    await boss.createQueue(name)
    await queue.push(Array.from({ length: 120 }, (_, index) => jobOf(`ada ${index}`)))
    await boss.send(name, { userId: 'ada' })
    const results = await Promise.all([queue.forget(isOfAda), queue.forget(isOfAda)])
    expect(results.reduce((sum, { deleted }) => sum + deleted, 0)).toBe(121)
    expect((await queue.forget(() => true)).deleted).toBe(0)
  })
})

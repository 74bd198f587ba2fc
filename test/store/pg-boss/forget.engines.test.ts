/** What is left of a user in PostgreSQL when a queue has forgotten them. */

import { describe, expect, it } from 'vitest'
import type { StoredJob } from '../../../src/store/queue-types.ts'
import { needs } from '../../support/needs.ts'
import { jobOf } from '../../support/queues.ts'
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

  /** In base64, as pg-boss has it, or in hexadecimal digits, as its bytes are. */
  const has = (stored: string, text: string) =>
    (['base64', 'hex'] as const).some((form) => stored.includes(Buffer.from(text).toString(form).slice(0, -4)))

  it('keeps nothing of a body, of a retry state or of a reason', async () => {
    const { queue, work, now } = setUp()
    const retryState = Buffer.from('why: ada')
    const seen = work(({ body }) => {
      if (`${body}`.endsWith('done')) return { complete: true, log: Buffer.from('note: ada') }
      if (`${body}`.endsWith('fails')) return { deadLetter: 'reason: ada', retryState }
      return { retryAt: new Date(now() + 60_000), retryState }
    })
    await queue.push(['ada fails', 'ada waits', 'bob is done', 'bob waits'].map((body) => jobOf(body)))
    await until(() => seen.length === 4)
    await queue.drain()
    void queue.pause()
    await queue.push([jobOf('ada is due'), { ...jobOf('ada is later'), notBefore: new Date(now() + 60_000) }])
    const traces = ['ada fails', 'ada waits', 'ada is due', 'ada is later', 'reason: ada']
    const before = await everything()
    expect(traces.filter((text) => !has(before, text))).toEqual([])
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 4, active: 0 })
    const after = await everything()
    expect(traces.filter((text) => has(after, text))).toEqual([])
    expect(has(after, 'bob is done')).toBe(true)
    expect(has(after, 'bob waits')).toBe(true)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 0 })
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
})

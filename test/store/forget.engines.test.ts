/** What is left of a user on a server when a queue has forgotten them. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { needs } from '../support/needs.ts'
import { textsIn } from '../support/plain-text.ts'
import { jobOf, work } from '../support/queues.ts'
import { until } from '../support/until.ts'
import { useServers } from './on-servers.ts'

const { onBullmq, onPgBoss, readFromRedis, readFromPostgres, removeFromRedis } = useServers()

const STORED = ['fails', 'fails, why', 'waits', 'waits, why', 'due', 'later']
const tracesOf = (user: string) => STORED.map((what) => `${user} ${what}`)

describe.each(['Redis', 'PostgreSQL'] as const)('a queue on %s that forgets a user', (server) => {
  it('keeps nothing of a body or of a retry state', needs(server), async () => {
    const name = `forgets-${randomUUID()}`
    const queue = server === 'Redis' ? onBullmq(name, { pollMs: 10 }) : onPgBoss(name, { pollMs: 20 })
    const read = server === 'Redis' ? readFromRedis : readFromPostgres
    onTestFinished(async () => {
      await queue.close({ graceMs: 0 })
      if (server === 'Redis') await removeFromRedis(name)
    })
    const later = new Date(Date.now() + 60 * 60_000)
    const seen = work(queue, ({ body }) => {
      const retryState = Buffer.from(`${body}, why`)
      return `${body}`.endsWith('fails') ? { deadLetter: 'no', retryState } : { retryAt: later, retryState }
    })
    await queue.push(['ada fails', 'bob fails', 'ada waits', 'bob waits'].map((body) => jobOf(body)))
    await until(() => seen.length === 4)
    await queue.drain()
    void queue.pause()
    await queue.push([jobOf('ada due'), jobOf('bob due')])
    await queue.push(['ada later', 'bob later'].map((body) => jobOf(body, { notBefore: later })))

    const before = await read(name)
    const forgotten = await queue.forget(({ body }) => `${Buffer.from(body)}`.startsWith('ada'))
    const after = await read(name)

    expect(forgotten).toEqual({ deleted: 4, active: 0 })
    const all = [...tracesOf('ada'), ...tracesOf('bob')]
    expect([textsIn(before, all), textsIn(after, all)]).toEqual([all, tracesOf('bob')])
  })
})

/** `hookline queue` and `hookline types` on BullMQ and pg-boss. */

import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { Queue } from 'hookline/queues'
import { bullmqQueue } from 'hookline/queues/bullmq'
import { pgBossQueue } from 'hookline/queues/pg-boss'
import { fixtures } from 'hookline/testing'
import { Redis } from 'ioredis'
import { afterAll, describe, expect, inject, it } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { createSchema } from '../../../test/support/postgres.ts'
import { freePort, removeQueue } from '../../../test/support/redis.ts'
import { expectUsage, hookline, jsonLines, listenHere } from './command.ts'
import { fillInbox, handle } from './inbox.ts'
import { readTraffic } from './types/read-traffic.ts'

const redisUrl = inject('redisUrl')
const databaseUrl = inject('databaseUrl')
const schema = databaseUrl === undefined ? undefined : createSchema(databaseUrl)
const redis = redisUrl === undefined ? undefined : new Redis(redisUrl)
const prefix = `cli-${randomUUID()}`
const NAMES = ['letters', 'one', 'two']

afterAll(async () => {
  for (const name of NAMES) if (redis) await removeQueue(redis, name, prefix)
  redis?.disconnect()
  await schema?.drop()
})

const pg = { connectionString: databaseUrl, schema: schema?.name ?? '', max: 2 }
const openBullmq = (name: string): Queue => bullmqQueue({ name, connection: redisUrl, prefix })
const openPgBoss = (name: string): Queue => pgBossQueue({ name, ...pg })

describe.each([
  ['BullMQ', 'Redis', redisUrl, { prefix }, openBullmq],
  ['pg-boss', 'PostgreSQL', databaseUrl, { schema: pg.schema }, openPgBoss],
] as const)('on %s', (_engine, needed, location = '', options, open) => {
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])

  it('dead letters are counted, listed, shown, redriven and dropped', needs(needed), async () => {
    const run = (...action: string[]) =>
      hookline(['queue', ...action, '--name', 'letters', ...flags], { env: { HOOKLINE_QUEUE: location } })
    const json = async (...action: string[]) => JSON.parse((await run(...action, '--json')).stdout)
    await fillInbox(() => open('letters'))

    const counts = await json('counts')
    const letters = jsonLines<{ id: string; reason: string }>((await run('dead', '--json')).stdout)
    const shown = await json('show', letters[0]?.id ?? '')
    const redriven = await json('redrive', letters[0]?.id ?? '')
    const dropped = await json('drop', '--reason', 'message_type_unknown')
    const unknown = await hookline(['queue', location, '--name', 'ordres', ...flags])

    expect(counts).toMatchObject({ queue: 'letters', waiting: 1, active: 0, deadLetters: 3 })
    const reasons = ['handler_failed', 'handler_failed', 'message_type_unknown']
    expect(letters.map(({ reason }) => reason).sort()).toEqual(reasons)
    expect(shown).toMatchObject({ id: letters[0]?.id, attempts: 1, verified: 'signature', userId: 'u1' })
    expect([redriven, dropped]).toMatchObject([{ done: 1 }, { done: 1 }])
    expect(await json('counts')).toMatchObject({ deadLetters: 1 })
    expectUsage(unknown, 'ordres', "'letters'")
  })

  it('the history of inboxes is traffic', needs(needed), async () => {
    const track = (event: string) => ({ type: 'track', userId: 'u1', event })
    await handle(open('one'), [track('A'), fixtures.identify, { custom: 'ada@example.com' }])
    await handle(open('two'), [track('B')])
    const { events, skipped } = (await readTraffic(location, options)) ?? {}
    expect(events?.sort()).toEqual(['A', 'B', false])
    expect(Object.values(skipped ?? {})).toEqual([1])
    expect(await readTraffic(location, { ...options, name: 'two' })).toMatchObject({ events: ['B'] })
  })
})

it.each(['redis', 'postgres'])('a %s that is not there, or does not answer, is wrong usage', async (scheme) => {
  const silent = new URL(await listenHere(createServer().on('clientError', () => {})))
  const hosts = [`127.0.0.1:${await freePort()}`, silent.host]
  for (const host of hosts) {
    const ran = await hookline(['queue', `${scheme}://bob:hunter2@${host}/0`])
    expectUsage(ran, `${scheme}://${host}`)
    expect(ran.stderr).not.toMatch(/hunter2|\bbob\b/)
  }
})

/** Processes and connections that die while handlers write in the transaction of their message: each effect is there once. */

import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { expect, inject, it, onTestFinished } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { type Child, startChild } from '../child.ts'
import { createSite, rounds, seed } from '../engines.ts'
import { openQueue, secret } from '../place.ts'
import type { EffectsSettings } from '../programs/effects.ts'
import { createRandom } from '../random.ts'

const databaseUrl = inject('databaseUrl')
/** A round: one of these processes is killed, then the connections of a handler or two. */
const PROCESSES = 2
const KILLS = 10
const MESSAGES = 40
const ALIVE_MS = 250

it.skipIf(databaseUrl === undefined).each([false, true])(
  'a counter that handlers raise in their transactions is the number of messages, whatever dies; of batches: %s',
  { timeout: 120_000 + rounds * 60_000 },
  async (batched) => {
    const random = createRandom(seed)
    const site = createSite('pg-boss', databaseUrl as string, 10_000)
    onTestFinished(site.remove)
    const { place } = site
    const client = new pg.Client({ connectionString: databaseUrl as string })
    await client.connect()
    const queue = await openQueue(place)
    const receiver = createReceiver({ secret, inbox: queue })
    receiver.on('*', () => {}) // It stores messages, and handles none.
    await queue.deadLetters() // Opens the queue, and its schema.
    await client.query(`CREATE TABLE ${place.name}.effects (id text)`)
    await client.query(`CREATE TABLE ${place.name}.effects_count (part int, n int)`)
    await client.query(`INSERT INTO ${place.name}.effects_count SELECT part, 0 FROM generate_series(0, 9) AS part`)

    const start = async (): Promise<Child> => {
      const child = startChild('effects', { place, batched } satisfies EffectsSettings)
      await child.ready
      return child
    }
    const children = await Promise.all(Array.from({ length: PROCESSES }, start))
    let sent = 0
    for (let kill = 0; kill < rounds * KILLS; kill += 1) {
      for (let index = 0; index < MESSAGES; index += 1) {
        const { bytes, headers } = signedRequest({ ...fixtures.track, messageId: `${sent}` }, secret)
        expect((await receiver.receive(bytes, headers)).status).toBe(200)
        sent += 1
      }
      await wait(random() * ALIVE_MS)
      await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE application_name = 'hookline handlers' AND state <> 'idle' LIMIT 2`)
      const place = Math.floor(random() * PROCESSES)
      children[place]?.kill()
      await children[place]?.ended
      children[place] = await start()
    }
    // The claims of those that died lapse.
    const left = `SELECT FROM ${place.name}.job WHERE name = $1 AND state < 'completed' LIMIT 1`
    while ((await client.query(left, [place.name])).rowCount !== 0) await wait(100)
    await Promise.all(children.map((child) => child.close()))
    expect(await receiver.deadLetters()).toEqual([])
    const { rows } = await client.query(`SELECT count(*)::int AS all, count(DISTINCT id)::int AS different,
      (SELECT sum(n)::int FROM ${place.name}.effects_count) AS counter FROM ${place.name}.effects`)
    expect(rows).toEqual([{ all: sent, different: sent, counter: sent }])
    await receiver.close({ graceMs: 0 })
    await client.end()
  },
)

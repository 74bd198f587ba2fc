/** What happens to a PostgreSQL in production: workers go on by themselves, and each message is handled exactly once. */

import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { PgBoss } from 'pg-boss'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../../src/kit/clock.ts'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { needs } from '../../support/needs.ts'
import { createPostgres, findPostgres, type PostgresServer } from '../../support/postgres-server.ts'
import { until } from '../../support/until.ts'

const programs = findPostgres()
const secret = 'secret'
const onError = (): void => {}
const HOUR_MS = 60 * 60_000
const END_CONNECTIONS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"

describe('workers go on by themselves, and handle each message exactly once', needs('initdb', 'runuser'), () => {
  let server: PostgresServer
  let skewMs = 0
  beforeAll(async () => {
    server = await createPostgres(programs as string)
    await server.start()
    await ask('CREATE TABLE effects (queue text, id text)')
  }, 30_000)
  afterAll(() => server.dispose(), 30_000)

  /** Returns the first columns of the last answer. */
  async function ask(...statements: string[]): Promise<unknown[]> {
    const client = new pg.Client({ connectionString: server.url })
    client.on('error', () => {})
    await client.connect()
    let rows: unknown[][] = []
    for (const text of statements) ({ rows } = await client.query<unknown[]>({ text, rowMode: 'array' }))
    await client.end()
    return rows.map(([first]) => first)
  }

  /** What pg-boss does when the leases of a queue are over: those of lost claims, which a worker would have ended long ago. */
  async function endLeases(name: string): Promise<void> {
    const old = "started_on < now() - interval '3 seconds'"
    await ask(
      `UPDATE pgboss.job SET heartbeat_on = heartbeat_on - interval '1 hour' WHERE name LIKE '${name}%' AND ${old}`,
      `UPDATE pgboss.queue SET monitor_on = NULL WHERE name LIKE '${name}%'`,
    )
    const boss = new PgBoss({ connectionString: server.url, supervise: false })
    await boss.start()
    for (const lane of [name, `${name}-groups`]) await boss.supervise(lane)
    await boss.stop({ graceful: false })
  }

  const setReadOnly = (to: 'on' | 'off') =>
    ask(
      'SET default_transaction_read_only = off',
      `ALTER SYSTEM SET default_transaction_read_only = ${to}`,
      'SELECT pg_reload_conf()',
      END_CONNECTIONS,
    )

  /** Takes all connections that the server has left. */
  async function exhaust(): Promise<() => Promise<void>> {
    const taken: pg.Client[] = []
    await ask(END_CONNECTIONS)
    for (;;) {
      const client = new pg.Client({ connectionString: server.url })
      client.on('error', () => {})
      if (await client.connect().catch((error: unknown) => error)) break
      taken.push(client)
    }
    return async () => void (await Promise.all(taken.map((client) => client.end())))
  }

  /** What goes wrong; returns what ends it. */
  const faults: Readonly<Record<string, () => Promise<() => Promise<unknown>>>> = {
    'when the server dies and starts again': async () => {
      await server.stop()
      return () => server.start()
    },
    'when a failover leaves a server that only reads': async () => {
      await setReadOnly('on')
      return () => setReadOnly('off')
    },
    'when the server has no connection left': exhaust,
    'when the clock of the machine goes an hour ahead, and back': async () => {
      skewMs = HOUR_MS
      return async () => {
        skewMs = -HOUR_MS
      }
    },
  }

  it.each(Object.entries(faults))('%s', { timeout: 90_000 }, async (_fault, begin) => {
    const name = randomUUID()
    const handled = [0, 0]
    const acknowledged: string[] = []
    let refused = 0
    let isLoading = true
    onTestFinished(() => {
      isLoading = false
      skewMs = 0
    })
    const clock = { ...systemClock, now: () => systemClock.now() + skewMs }
    const receivers = handled.map((_, worker) => {
      const queue = pgBossQueue({ name, connectionString: server.url, timeoutMs: 5_000, pollMs: 50, onError, clock })
      const groupBy = () => `${Math.floor(Math.random() * 20)}`
      const inbox = { queue, transactional: true, retries: () => 50, groupBy }
      const receiver = createReceiver({ secret, clock, onError, inbox })
      receiver.on('track', async ({ messageId }, { db }) => {
        await db?.query('INSERT INTO effects VALUES ($1, $2)', [name, messageId])
        handled[worker] = (handled[worker] ?? 0) + 1
      })
      onTestFinished(() => void receiver.close({ graceMs: 0 }))
      return receiver
    })
    for (const receiver of receivers) receiver.start()

    async function load(): Promise<void> {
      while (isLoading) {
        const messageId = randomUUID()
        const { bytes, headers } = signedRequest({ ...fixtures.track, messageId }, secret)
        const { status } = (await receivers[0]?.receive(bytes, headers)) ?? {}
        if (status === 200) acknowledged.push(messageId)
        else refused += 1
      }
    }
    const loads = Array.from({ length: 5 }, load)
    const goOn = async (): Promise<void> => {
      const before = [...handled]
      await until(() => handled.every((count, worker) => count > (before[worker] ?? 0) + 20))
    }
    const sum = (): number => refused + acknowledged.length
    await goOn()
    const end = await begin()
    const before = sum()
    await until(() => sum() > before + 20) // Refused or not: one of them may have kept its connections.
    await end()
    await goOn()
    isLoading = false
    await Promise.all(loads)
    skewMs = 0

    const effects = () => ask(`SELECT id FROM effects WHERE queue = '${name}'`)
    await until(async () => {
      await endLeases(name)
      const found = new Set(await effects())
      return acknowledged.every((id) => found.has(id))
    })
    const ids = await effects()
    expect(ids.length).toBe(new Set(ids).size)
  })
})

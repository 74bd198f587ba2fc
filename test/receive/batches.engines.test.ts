/** A batch of the most elements in an inbox on each engine: stored in one push, and each handled once. */

import { randomUUID } from 'node:crypto'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createReceiver } from '../../src/index.ts'
import type { Queue } from '../../src/queues.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { signedRequest } from '../../src/testing.ts'
import { useServers } from '../store/on-servers.ts'
import { newFile } from '../store/sqlite/set-up.ts'
import { track } from '../support/batches.ts'
import { needs } from '../support/needs.ts'
import { secret } from '../support/receive.ts'
import { until } from '../support/until.ts'

const servers = useServers()
const users = Array.from({ length: 1_000 }, (_, index) => `user-${index}`)

async function check(queue: Queue): Promise<void> {
  const receiver = createReceiver({ secret, batches: true, inbox: queue })
  onTestFinished(async () => void (await receiver.close()))
  const seen: string[] = []
  receiver.on('track', ({ userId }) => void seen.push(String(userId)))
  const { bytes, headers } = signedRequest(
    users.map((user) => track(user)),
    secret,
  )
  for (let time = 0; time < 2; time++) {
    const received = await receiver.receive(bytes, headers)
    expect(received).toMatchObject({ ok: true, status: 200 })
    expect(received.elements).toHaveLength(1_000)
  }
  receiver.start()
  await until(async () => seen.length >= 1_000 && (await queue.counts()).active === 0)
  expect(seen.sort()).toEqual(users.toSorted())
}

describe('a batch of 1000', () => {
  it('on SQLite', () => check(sqliteQueue({ path: newFile() })))
  it('on BullMQ', needs('Redis'), () => check(servers.onBullmq(randomUUID())))
  it('on pg-boss', needs('PostgreSQL'), () => check(servers.onPgBoss(randomUUID())))
})

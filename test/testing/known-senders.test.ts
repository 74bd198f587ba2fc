/** Requests in the form of each known sender: what receivers take of them, through each adapter and with each inbox. */

import { randomUUID } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import type { ReceivedMessage } from '../../src/protocol/message.ts'
import { sign } from '../../src/protocol/signature.ts'
import { bullmqQueue } from '../../src/queues-bullmq.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { pgBossQueue } from '../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { Delivery, DeliveryMethod } from '../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { Queue } from '../../src/store/queue-types.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { KNOWN_SENDERS, type KnownSender, SENDER_NAMES } from '../../src/testing/known-senders.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { bufferedHosts, hosts } from '../support/hosts.ts'
import { needs } from '../support/needs.ts'
import { createSchema } from '../support/postgres.ts'
import { removeQueue } from '../support/redis.ts'
import { until } from '../support/until.ts'

const secret = 'a shared secret'
const mapped = { order: { id: 7, total: 12.5 } }

/** What a receiver of each sender is created with, as docs/senders.md says it. */
const OPTIONS: Readonly<Record<KnownSender, ReceiverOptions>> = {
  segment: { secret },
  'segment-actions': { secret, methods: ['POST', 'PUT', 'PATCH'] },
  'customer.io': { secret, methods: ['POST', 'PUT', 'PATCH', 'DELETE'], batches: true },
  rudderstack: { header: { name: 'x-webhook-key', value: secret }, methods: ['POST', 'PUT', 'PATCH'] },
}

function create(as: KnownSender, options: Partial<ReceiverOptions> = {}) {
  const handled: { readonly message: ReceivedMessage; readonly delivery: Delivery }[] = []
  const receiver = createReceiver({ onError: () => {}, ...OPTIONS[as], custom: true, ...options } as ReceiverOptions)
  receiver.on('*', (message, delivery) => void handled.push({ message, delivery }))
  return { receiver, handled }
}

/** Every request that a sender may make. */
function requestsOf(as: KnownSender) {
  const { methods } = KNOWN_SENDERS[as]
  const how = (method?: DeliveryMethod) => ({ as, ...(method && { method }) }) as { as: 'rudderstack' }
  const single = Object.values(fixtures).map((message) => signedRequest(message, secret, how()))
  if (as === 'segment') return single
  const byMethod = methods.map((method) => signedRequest(fixtures.track, secret, how(method)))
  const batch = OPTIONS[as].batches ? [signedRequest([fixtures.track, fixtures.page, mapped], secret, how())] : []
  return [...single, ...byMethod, signedRequest(mapped, secret, how()), ...batch]
}

const COUNTS: Readonly<Record<KnownSender, number>> = {
  segment: 7,
  'segment-actions': 7 + 3 + 1,
  'customer.io': 7 + 4 + 1 + 3,
  rudderstack: 7 + 3 + 1,
}

describe.each(SENDER_NAMES)('%s', (as) => {
  it.each([...hosts, ...bufferedHosts])('through $name: each request is taken, a forged one is not', async (host) => {
    const { receiver, handled } = create(as)
    const running = await host.start(receiver, 'nothing')
    onTestFinished(() => running.close())
    for (const { method, headers, bytes } of requestsOf(as)) {
      const reply = await running.send({ method, headers, chunks: [bytes] })
      expect([reply?.status, reply?.text]).toEqual([200, '{"ok":true}'])
    }
    expect(handled).toHaveLength(COUNTS[as])
    const forged = signedRequest(fixtures.track, 'a guess', { as } as { as: 'rudderstack' })
    const proof = as === 'rudderstack' ? 'x-webhook-key' : 'x-signature'
    const right = requestsOf(as)[0]?.headers as Record<string, string>
    for (const value of [
      (forged.headers as Record<string, string>)[proof] as string,
      '',
      [right[proof] as string, right[proof] as string],
    ]) {
      const reply = await running.send({ headers: { ...forged.headers, [proof]: value }, chunks: [forged.bytes] })
      expect(reply?.status).toBe(401)
    }
    const { [proof]: _, ...headers } = forged.headers as Record<string, string>
    expect((await running.send({ headers, chunks: [forged.bytes] }))?.status).toBe(401)
    expect(handled).toHaveLength(COUNTS[as])
  })

  async function check(queue: Queue): Promise<void> {
    const { receiver, handled } = create(as, { inbox: queue })
    onTestFinished(async () => void (await receiver.close()))
    const running = await (hosts.at(-1) as (typeof hosts)[number]).start(receiver, 'nothing')
    for (const { method, headers, bytes } of requestsOf(as)) {
      expect((await running.send({ method, headers, chunks: [bytes] }))?.status).toBe(200)
    }
    await running.close()
    receiver.start()
    await until(() => handled.length === COUNTS[as])
    const proof = as === 'rudderstack' ? 'header' : 'signature'
    expect(new Set(handled.map(({ delivery }) => delivery.verified))).toEqual(new Set([proof]))
    expect(await receiver.deadLetters()).toEqual([])
  }

  it('with an inbox in memory', () => check(memoryQueue()))

  it('with an inbox on SQLite', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hookline-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true, maxRetries: 9 }))
    await check(sqliteQueue({ path: join(directory, 'inbox.sqlite') }))
  })

  it('with an inbox on BullMQ', needs('Redis'), async () => {
    const [name, connection] = [randomUUID(), inject('redisUrl') as string]
    onTestFinished(async () => {
      const redis = new Redis(connection)
      await removeQueue(redis, name)
      redis.disconnect()
    })
    await check(bullmqQueue({ name, connection }))
  })

  it('with an inbox on pg-boss', needs('PostgreSQL'), async () => {
    const connectionString = inject('databaseUrl') as string
    const schema = createSchema(connectionString)
    onTestFinished(() => schema.drop())
    await check(pgBossQueue({ name: 'inbox', connectionString, schema: schema.name }))
  })
})

describe('a request in the form of a sender', () => {
  it('has the fields of a recorded message, in place of those of the specification', () => {
    const { body, headers } = signedRequest(fixtures.alias, secret, { as: 'segment-actions' })
    const message = JSON.parse(body)
    const { timestamp } = fixtures.alias
    expect(message).toMatchObject({ type: 'alias', previousId: 'anonymous-1', userId: 'user-1', version: 2 })
    expect(message).toMatchObject({ messageId: expect.any(String), originalTimestamp: timestamp, sentAt: timestamp })
    expect(message).not.toHaveProperty('Previous ID')
    expect(headers).toEqual({
      'content-type': 'application/json',
      'user-agent': 'Segment (Actions)',
      'x-signature': sign(body, secret),
    })
  })

  it('has the previous id of an alias, in whichever spelling it is passed', () => {
    const { previousId: _, ...spaced } = fixtures.alias
    for (const alias of [
      fixtures.alias,
      spaced,
      { type: 'alias', 'Previous ID': 'anonymous-1', 'User ID': 'user-1' },
    ]) {
      const message = JSON.parse(signedRequest({ ...alias, messageId: undefined }, secret, { as: 'customer.io' }).body)
      expect(message).toMatchObject({ previousId: 'anonymous-1', userId: 'user-1', messageId: expect.any(String) })
    }
  })

  it('keeps a body of the user as it is', () => {
    for (const as of ['segment-actions', 'customer.io'] as const) {
      expect(signedRequest(mapped, secret, { as }).body).toBe(JSON.stringify(mapped))
      expect(signedRequest('[1, 2]', secret, { as }).body).toBe('[1, 2]')
    }
  })

  it('signs a batch as a whole', () => {
    const { body, headers } = signedRequest([fixtures.track, mapped], secret, { as: 'customer.io' })
    expect(headers['x-signature']).toBe(sign(body, secret))
  })

  it('without a signature: the secret is in a header of your choice', () => {
    const { headers } = signedRequest(fixtures.track, secret, { as: 'rudderstack', header: 'Authorization' })
    expect(headers).toEqual({ 'content-type': 'application/json', 'user-agent': 'RudderLabs', authorization: secret })
    expect(() => signedRequest(fixtures.track, '', { as: 'rudderstack' })).toThrow(TypeError)
  })

  it.each<[string, object, string]>([
    ['another sender', { as: 'customerio' }, "Did you mean 'customer.io'?"],
    ['a method that the sender has not', { as: 'rudderstack', method: 'DELETE' }, 'Pass one of POST, PUT, PATCH.'],
    ['a method of the default', { method: 'PUT' }, 'Pass one of POST.'],
    ['a header for a sender that signs', { header: 'x-key' }, 'needs a sender that does not sign'],
    ['a header that the request has', { as: 'rudderstack', header: 'Content-Type' }, 'that the request does not have'],
    ['a header that is none', { as: 'rudderstack', header: 'a b' }, '`signedRequest: header` must be the name'],
  ])('%s: a TypeError', (_what, options, text) => {
    expect(() => signedRequest(fixtures.track, secret, options as { as: 'rudderstack' })).toThrow(text)
  })
})

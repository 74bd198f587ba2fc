/** `hookline queue`, on each engine. */

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { bullmqQueue } from '../../../src/queues-bullmq.ts'
import { pgBossQueue } from '../../../src/queues-pg-boss.ts'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import type { Receiver } from '../../../src/receive/receiver-types.ts'
import type { Queue } from '../../../src/store/queue-types.ts'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import type { Need } from '../../../test/support/left-out.ts'
import { needs } from '../../../test/support/needs.ts'
import { createSchema } from '../../../test/support/postgres.ts'
import { removeQueue } from '../../../test/support/redis.ts'
import { until } from '../../../test/support/until.ts'
import { hookline, jsonLines, start } from './command.ts'

const redisUrl = inject('redisUrl')
const databaseUrl = inject('databaseUrl')
const schema = databaseUrl === undefined ? undefined : createSchema(databaseUrl)
const redis = redisUrl === undefined ? undefined : new Redis(redisUrl)
const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-queue-'))
const prefix = `cli-${randomUUID()}`
const path = join(folder, 'jobs.sqlite')
const secret = 'a secret'

afterAll(async () => {
  redis?.disconnect()
  await schema?.drop()
  await rm(folder, { recursive: true, maxRetries: 9 })
})

interface Engine {
  readonly engine: string
  readonly needed: readonly Need[]
  readonly location: string | undefined
  readonly flags: readonly string[]
  open(name: string): Queue
}

const pg = { connectionString: databaseUrl, schema: schema?.name ?? '', max: 2 }
const engines: readonly Engine[] = [
  { engine: 'SQLite', needed: [], location: path, flags: [], open: (name: string) => sqliteQueue({ path, name }) },
  {
    engine: 'BullMQ',
    needed: ['Redis'],
    location: redisUrl,
    flags: ['--prefix', prefix],
    open: (name: string) => bullmqQueue({ name, connection: redisUrl, prefix }),
  },
  {
    engine: 'pg-boss',
    needed: ['PostgreSQL'],
    location: databaseUrl,
    flags: ['--schema', schema?.name ?? ''],
    open: (name: string) => pgBossQueue({ name, ...pg }),
  },
]

/** Three dead letters, and one message that waits. */
async function fillInbox(open: () => Queue): Promise<void> {
  const queue = open()
  const receiver = createReceiver({ secret, inbox: { queue, retries: [], concurrency: 1 }, onError() {} })
  const fail = () => {
    throw new RangeError('no \u001b[31mstock')
  }
  receiver.on('track', fail, { name: 'crm' }).on('track', () => {})
  receiver.start()
  const [event, userId] = ['Order\u001b]0;Completed', 'u1']
  const messages = [{ ...fixtures.track, event, userId }, fixtures.track, { type: 'nonsense' }]
  for (const [index, message] of messages.entries()) {
    await receive(receiver, message)
    await until(async () => (await queue.deadLetters()).length === index + 1) // One after the other: they are listed in this order.
  }
  await receiver.close()

  const idle = createReceiver({ secret, inbox: { queue: open() } })
  await receive(idle, fixtures.identify)
  await idle.close()
}

async function receive(receiver: Receiver, message: object): Promise<void> {
  const { bytes, headers } = signedRequest(message as typeof fixtures.track, secret)
  await receiver.receive(bytes, { ...headers, 'x-team': 'growth', authorization: 'Bearer of a token' })
}

for (const { engine, needed, location = '', flags, open } of engines) {
  describe(`on ${engine}`, needs(...needed), () => {
    /** An inbox with dead letters, and the command on it. */
    function newInbox() {
      const name = `inbox-${randomUUID().slice(0, 8)}`
      const run = (action: readonly string[], more = {}) =>
        hookline(['queue', ...action, '--name', name, ...flags], { env: { HOOKLINE_QUEUE: location }, ...more })
      return {
        name,
        run,
        json: async (action: readonly string[]) => JSON.parse((await run([...action, '--json'])).stdout),
        letters: async () => jsonLines<{ id: string; failedAt: string }>((await run(['dead', '--json'])).stdout),
        fill: () => fillInbox(() => open(name)),
        async remove() {
          if (engine === 'BullMQ') await removeQueue(redis as Redis, name, prefix)
        },
      }
    }

    const { name, run, json, letters, fill, remove } = newInbox()
    beforeAll(fill)
    afterAll(remove)

    it('counts what waits, and groups the dead letters', async () => {
      const { code, stdout, stderr } = await hookline(['queue', location, '--name', name, ...flags])
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout.split('\n')[0]).toMatch(/^QUEUE +WAITING +ACTIVE +OLDEST DUE +DEAD LETTERS$/)
      expect(stdout).toMatch(new RegExp(`\n${name}  1 +0 +\\d+ s ago +3: 2 handler_failed, 1 message_type_unknown\n`))
      expect(await json(['counts'])).toMatchObject({
        queue: name,
        waiting: 1,
        active: 0,
        deadLetters: 3,
        reasons: [
          { reason: 'handler_failed', count: 2 },
          { reason: 'message_type_unknown', count: 1 },
        ],
      })
    })

    it('lists dead letters by their errors, and escapes what strangers sent', async () => {
      const { code, stdout } = await run(['dead'])
      expect(code).toBe(0)
      expect(stdout).toMatch(
        /(^|\n)handler_failed: RangeError: no \\u\{1b\}\[31mstock\n {2}2, the oldest \d+ s ago, the newest \d+ s ago\n {2}[0-9a-f-]{36} {2}\d+ s ago/,
      )
      expect(stdout).toContain('track Order\\u{1b}]0;Completed, user u1\n')
      expect(stdout).not.toContain('\u001b')
      expect((await run(['dead', '--limit', '1'])).stdout).toContain('  and 1 more: see --limit\n')
    })

    it('shows what a dead letter is', async () => {
      const [first] = await letters()
      const { code, stdout } = await run(['show', first?.id ?? ''])
      expect(code).toBe(0)
      expect(stdout).toContain(`id        ${first?.id}\nmessage   track Order\\u{1b}]0;Completed, user u1\n`)
      expect(stdout).toContain('reason    handler_failed\n')
      expect(stdout).toContain('attempts  1\nerror     RangeError: no \\u{1b}[31mstock\n')
      expect(stdout).toContain('\nhandlers  Failed: crm. Done: those without a name.\n')
      expect(stdout).toContain('with a right signature\n')
      expect(stdout).toContain('\n  x-team: (hidden)\n')
      expect(stdout).toContain('\n    "total": 39.95,\n')
      expect(stdout).not.toContain('\u001b')
      expect(stdout).not.toContain('Bearer')
      const shown = await json(['show', first?.id.slice(0, 12) ?? ''])
      for (const action of ['show', 'drop']) {
        expect(await run([action, 'b44'])).toMatchObject({
          code: 1,
          stderr: "The beginning of an id needs 4 characters or more. Got 'b44'.\n",
        })
      }
      expect(shown).toMatchObject({
        id: first?.id,
        reason: 'handler_failed',
        attempts: 1,
        verified: 'signature',
        userId: 'u1',
      })
      expect(JSON.parse(shown.body)).toMatchObject({ type: 'track' })

      const unknown = await run(['show', randomUUID()])
      expect(unknown).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/^No dead letter or handled message has the id /),
      })
    })

    it('asks on a terminal before it redrives more than one', needs('util-linux'), async () => {
      const { child, printed, ended } = await start(['queue', 'redrive', '--name', name, ...flags], {
        env: { HOOKLINE_QUEUE: location },
        isTerminal: true,
      })
      await until(() => printed.stdout.includes('[y/N]'))
      child.stdin?.write('n\n')
      expect(await ended).toMatchObject({ code: 2, stdout: expect.stringContaining('Nothing was changed.') })
      expect((await json(['counts'])).deadLetters).toBe(3)
    })

    it('says what a redrive would do, refuses more than one without a yes, and does it', async () => {
      const { name, run, json, letters, fill, remove } = newInbox()
      onTestFinished(remove)
      await fill()

      const dry = await run(['redrive', '--dry-run'])
      const what = `3 dead letters of queue ${name}: 2 handler_failed, 1 message_type_unknown`
      expect(dry).toEqual({ code: 0, stdout: `Would redrive ${what}.\n`, stderr: '' })
      const unasked = await run(['redrive'])
      expect([unasked.code, unasked.stderr]).toEqual([2, expect.stringContaining(`Redrive ${what}?`)])
      expect((await json(['counts'])).deadLetters).toBe(3)

      const [first] = await letters()
      const one = await run(['redrive', first?.id ?? ''])
      expect(one.stdout).toBe(`Redriven: 1 dead letter of queue ${name}: 1 handler_failed.\n`)
      const again = await run(['redrive', first?.id ?? ''])
      expect(again).toMatchObject({ code: 1, stdout: 'No dead letters to change.\n' })
      expect(await json(['redrive', '--reason', 'message_type_unknown'])).toMatchObject({ found: 1, done: 1 })
      expect(await json(['counts'])).toMatchObject({ ...(engine !== 'pg-boss' && { waiting: 3 }), deadLetters: 1 }) // Its statistics are older.
    })

    it('drops', async () => {
      const { name, run, json, fill, remove } = newInbox()
      onTestFinished(remove)
      await fill()

      const reason = ['--reason', 'handler_failed']
      expect(await json(['drop', ...reason, '--dry-run'])).toMatchObject({ dryRun: true, found: 2, done: 0 })
      const dropped = await run(['drop', ...reason, '--yes'])
      expect(dropped.stdout).toBe(`Dropped: 2 dead letters of queue ${name}: 2 handler_failed.\n`)
      expect(await json(['counts'])).toMatchObject({ waiting: 1, deadLetters: 1 })
      expect(await json(['drop'])).toMatchObject({ found: 1, done: 1 })
      expect(await run(['dead'])).toEqual({ code: 0, stdout: '', stderr: 'No dead letters.\n' })
    })

    it('says in one sentence which queues exist', async () => {
      const { code, stdout, stderr } = await hookline(['queue', location, '--name', 'ordres', ...flags])
      expect([code, stdout, stderr.split('\n').length]).toEqual([2, '', 2])
      expect(stderr).toMatch(new RegExp(`^error: Queue ordres .*Got .*'${name}'`))
    })
  })
}

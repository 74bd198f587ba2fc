/** `hookline queue`: a file of several queues, what cannot be looked into, and the packages of an engine. */

import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cp, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { createDestination } from '../../../src/send/create-destination.ts'
import type { Queue } from '../../../src/store/queue-types.ts'
import { startEndpoint } from '../../../src/testing/scripted-endpoint.ts'
import { freePort } from '../../../test/support/redis.ts'
import { until } from '../../../test/support/until.ts'
import { identify, nameOf } from '../src/queue/dead-letters.ts'
import { hookline, jsonLines, listenHere } from './command.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-queue-'))
const secret = 'a secret'

afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

it.each([
  [{ type: 'track', event: 'Sold', userId: 815 }, 'track Sold, user 815'],
  [{ type: 'page', userId: '', anonymousId: 'a-1' }, 'page, anonymous a-1'],
])('names a message by the id that it has: %j', (message, name) => {
  expect(nameOf(identify(Buffer.from(JSON.stringify(message))))).toBe(name)
})

describe('in a SQLite file', () => {
  const twoQueues = join(folder, 'two.sqlite')

  beforeAll(async () => {
    await using endpoint = await startEndpoint({ script: [{ status: 404, body: 'no \u001b[31msuch page' }] })
    const [outbox, inbox] = ['outbox', 'inbox'].map((name): Queue => sqliteQueue({ path: twoQueues, name })) as [
      Queue,
      Queue,
    ]
    const webhooks = [{ url: endpoint.url }]
    const destination = createDestination({ webhooks, sharedSecret: secret, queue: outbox, onAttempt() {} })
    await destination.track({ userId: 'u1', event: 'Order Completed' })
    await outbox.push([{ id: randomUUID(), body: Buffer.from('no message\n') }])
    await until(async () => (await outbox.deadLetters()).length === 2)
    await inbox.counts()
    await Promise.all([destination.close({ graceMs: 0 }), inbox.close({ graceMs: 0 })])
  })

  it('counts each queue, and asks for a name otherwise', async () => {
    const { stdout } = await hookline(['queue', twoQueues])
    expect(stdout).toMatch(/\noutbox .* 2: 1 (refused, 1 unreadable|unreadable, 1 refused)\ninbox +0 /)
    const { code, stderr } = await hookline(['queue', twoQueues, 'dead'])
    const sentence = `Pass --name, because ${twoQueues} holds 2 queues: 'outbox', 'inbox'.`
    expect([code, stderr]).toEqual([2, `error: ${sentence}\n`])
  })

  it('copies a file, once', async () => {
    const copy = join(folder, 'copy.sqlite')
    const backup = ['queue', twoQueues, 'backup', copy]
    expect((await hookline(backup)).stdout).toBe(`Written to ${copy}.\n`)
    expect((await hookline(['queue', copy])).stdout).toMatch(/\noutbox .* 2: /)
    const { code, stderr } = await hookline(backup)
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`cannot write a backup to ${copy}: there is a file already`),
    ])
  })

  it('shows what a destination could not deliver, and what is no message', async () => {
    const { stdout } = await hookline(['queue', twoQueues, 'dead', '--name', 'outbox', '--json'])
    const letters = jsonLines<{ id: string; reason: string; error: string }>(stdout)
    expect(letters.find(({ reason }) => reason === 'refused')).toMatchObject({ error: 'HTTP 404', userId: 'u1' })
    const idOf = (reason: string) => letters.find((letter) => letter.reason === reason)?.id ?? ''
    const show = (reason: string) => hookline(['queue', twoQueues, 'show', idOf(reason), '--name', 'outbox'])
    const refused = await show('refused')
    expect(refused.stdout).toContain('message   track Order Completed, user u1\nreason    refused\n')
    expect(refused.stdout).toMatch(/\nattempt {3}\S+Z {2}status 404, after \d+ ms/)
    expect(refused.stdout).not.toContain('\u001b')
    expect((await show('unreadable')).stdout).toMatch(/\nreason {4}unreadable\n[\s\S]*\nbody, 11 bytes\nno message\n/)
  })
})

it('shows what a transform threw, with its stack, and the message without what is stored with it', async () => {
  const path = join(folder, 'transform.sqlite')
  const queue = sqliteQueue({ path, name: 'outbox' })
  const transform = () => {
    throw new Error('no such field')
  }
  const logger = { error() {}, warn() {}, info() {} }
  const destination = createDestination({ webhooks: [{ url: 'http://127.0.0.1:9/' }], transform, queue, logger })
  const { id } = (await destination.track({ userId: 'u1', event: 'Sold' })) as { id: string }
  await until(async () => (await queue.counts()).deadLetters === 1)
  await destination.close()

  const { stdout } = await hookline(['queue', path, 'show', id])
  expect(stdout).toMatch(/\nerror {5}no such field\n {10}at .*queue\.test\.ts/)
  const [shown] = jsonLines<{ body: string }>((await hookline(['queue', path, 'show', id, '--json'])).stdout)
  expect(shown).toMatchObject({ error: { message: 'no such field', stack: expect.any(String) } })
  expect(shown?.body).toMatch(/^\{"/)
  expect(`${stdout}${shown?.body}`).not.toContain('hookline:')
})

it('an id may be shortened, as long as one dead letter is meant', async () => {
  const path = join(folder, 'shortened.sqlite')
  const queue = sqliteQueue({ path, name: 'jobs' })
  const ids = ['aaaa1111', 'aaaa2222', 'bbbb3333'].map((start) => `${start}-0000-4000-8000-000000000000`)
  await queue.push(ids.map((id) => ({ id, body: Buffer.from('{}') })))
  queue.work(async () => ({ deadLetter: 'refused' }), { concurrency: 1 })
  await queue.drain()
  await queue.close({ graceMs: 0 })
  const run = (...args: string[]) => hookline(['queue', path, ...args])
  for (const action of ['show', 'drop', 'redrive']) {
    expect(await run(action, 'aaaa')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('Pass more of the id.'),
    })
  }
  expect((await run('show', 'AAAA2')).stdout).toContain(ids[1])
  expect(await run('drop', 'bbbb', 'aaaa1')).toMatchObject({ code: 2, stderr: expect.stringContaining('--yes') })
  expect((await run('drop', 'bbbb', 'aaaa1', '--yes')).stdout).toContain('Dropped: 2 dead letters')
  expect((await run('dead', '--json')).stdout).toContain(ids[1])
})

describe('what cannot be looked into: one sentence, and exit code 2', () => {
  const refused = async (args: readonly string[], options = {}) => {
    const started = performance.now()
    const { code, stdout, stderr } = await hookline(['queue', ...args], options)
    expect([code, stdout, stderr.split('\n').length]).toEqual([2, '', 2])
    expect(stderr).not.toMatch(/hunter2|\bbob\b|at .*\.js/)
    expect(performance.now() - started).toBeLessThan(9_000)
    return stderr
  }

  it('a file that does not exist, which is not created', async () => {
    expect(await refused([join(folder, 'missing.sqlite')])).toContain('it does not exist')
    expect(await readdir(folder)).not.toContain('missing.sqlite')
  })

  it('a file of another kind, and of release 0.1', async () => {
    expect(await refused([join(root, 'package.json')])).toMatch(
      /it is not a SQLite database\. .* Pass the file of a sqliteQueue\.\n/,
    )
    const old = join(folder, 'old.sqlite')
    const database = new DatabaseSync(old)
    database.exec('CREATE TABLE hookline_queue_schema (version); INSERT INTO hookline_queue_schema VALUES (1)')
    database.close()
    expect(await refused([old])).toContain('Got version 1.')
  })

  it.each([
    ['no location', []],
    ['no location either', ['dead']],
    ['an action that does not exist', ['x.sqlite', 'ded']],
    ['a dead letter without an id', ['x.sqlite', 'show']],
    ['a backup without a file', ['x.sqlite', 'backup']],
    ['a history of none', ['x.sqlite', 'history', '--limit', '0']],
    ['a limit that would not limit', ['x.sqlite', 'drop', '--limit', '5', '--yes']],
    ['a reason that would select nothing', ['x.sqlite', 'dead', '--reason', 'crashed']],
    ['a URL of something else', ['mysql://bob:hunter2@localhost/x']],
    ['a URL that is none', ['postgres:/bob:hunter2@localhost']],
  ])('%s', async (_case, args) => void (await refused(args)))

  it('a location after the verb', async () => {
    expect(await refused(['dead', 'redis://bob:hunter2@127.0.0.1:1'])).toContain(
      'LOCATION comes first: hookline queue LOCATION dead.',
    )
  })

  it.each(['redis', 'postgres'])('a %s that is not there, or does not answer', async (scheme) => {
    const port = await freePort()
    expect(await refused([`${scheme}://bob:hunter2@127.0.0.1:${port}/0`])).toContain(`${scheme}://127.0.0.1:${port}`)
    const silent = new URL(await listenHere(createServer().on('clientError', () => {})))
    await refused([`${scheme}://bob:hunter2@${silent.host}/0`])
  })
})

describe('the packages of an engine', () => {
  /** The command where nothing is beside it, and a working directory of its own. */
  async function setUp() {
    const place = await mkdtemp(join(tmpdir(), 'hookline-cli-alone-'))
    onTestFinished(() => rm(place, { recursive: true, maxRetries: 9 }))
    const [installed, cwd] = [join(place, 'cache/node_modules/hookline'), join(place, 'project')]
    await mkdir(join(cwd, 'node_modules'), { recursive: true })
    for (const name of ['dist', 'package.json']) await cp(join(root, name), join(installed, name), { recursive: true })
    await symlink(join(root, 'node_modules/raw-body'), join(installed, '../raw-body'), 'junction')
    await writeFile(join(cwd, 'package.json'), '{}')
    const run = (location: string): Promise<string> =>
      new Promise((resolve) => {
        const args = [join(installed, 'dist/cli.js'), 'queue', location]
        execFile(process.execPath, args, { cwd }, (_error, _stdout, stderr) => resolve(stderr))
      })
    return { cwd, run }
  }

  it.each([
    ['redis://127.0.0.1:1', 'npx -p hookline -p bullmq -p ioredis hookline queue …'],
    ['postgres://127.0.0.1:1/x', 'npx -p hookline -p pg-boss hookline queue …'],
  ])('%s: says how to bring them, and finds them in the working directory', async (location, line) => {
    const { cwd, run } = await setUp()
    expect(await run(location)).toContain(line)
    for (const name of ['bullmq', 'ioredis', 'pg-boss']) {
      await symlink(join(root, 'node_modules', name), join(cwd, 'node_modules', name), 'junction')
    }
    expect(await run(location)).toContain('ECONNREFUSED')
  })
})

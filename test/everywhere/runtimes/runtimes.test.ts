/** The packed tarball on each runtime: the same programs, and what must come of them. */

import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { createProject, type Project } from '../../package/project.ts'
import { runProgram } from '../../package/run.ts'
import { hmac } from '../../support/hmac.ts'
import { clientOfHttp1 } from '../../support/wire.ts'
import { type Peers, startPeers } from './peers.ts'
import { checkReceiving, post } from './receiving.ts'
import { type Ended, RUNTIMES, startProgram } from './runtimes.ts'
import { check, checkPage, quote, type Row } from './table.ts'
import { bundleWorker, startWorkerd } from './workerd.ts'

/** At most so long a program lives when it has closed everything: less than an idle connection of undici does. */
const EXIT_MS = 3_800

const { dependencies, devDependencies } = manifest
const VERSIONS = { ...dependencies, ...devDependencies }
const PACKAGES = (['bullmq', 'ioredis', 'pg-boss', 'express', 'koa', 'fastify', 'undici'] as const).map(
  (name) => `${name}@${VERSIONS[name]}`,
)

let project: Project
beforeAll(async () => {
  project = await createProject(PACKAGES)
  await cp(fileURLToPath(new URL('programs', import.meta.url)), project.directory, { recursive: true })
})
afterAll(() => project?.remove())

describe.each(RUNTIMES)('$name', ({ name: runtime, command, servers }) => {
  let how: readonly string[]
  let sent: Promise<Ended>
  let peers: Peers
  let files: string
  beforeAll(async () => {
    how = await command()
    peers = await startPeers()
    files = await mkdtemp(join(tmpdir(), 'hookline-'))
    sent = start('send.mjs', peers.argument).ended // Its five seconds pass while other tests run.
  })
  afterAll(async () => {
    await peers?.close()
    await rm(files, { recursive: true, force: true })
  })

  const start = (...parameters: string[]) => startProgram(how, project.directory, parameters)

  /** Closed everything, and nothing was left that kept it alive. */
  function expectGracefulEnd({ code, errors, lingeredMs }: Ended): void {
    expect({ code, errors }).toEqual({ code: 0, errors: '' })
    expect(lingeredMs).toBeLessThan(EXIT_MS)
  }

  it('is of the version that it says', async () => {
    const [file = ''] = how
    const { stdout } = await runProgram(file, ['--version'], project.directory)
    expect(stdout.match(/\d+(\.\d+)?/)?.[0]).toMatch(new RegExp(`^${runtime.replace(/^\D+/, '')}(\\.|$)`))
  })

  describe.each(servers)('a server of %s', (kind) => {
    const row = kind === 'node' ? 'http' : 'fetch'
    let server: ReturnType<typeof start> | undefined
    afterAll(() => void server?.child.kill('SIGKILL'))
    const { client } = checkReceiving(row, runtime, async () => {
      server = start('serve.mjs', kind)
      return Number(await server.outcomeOf('listening'))
    })

    check(row, runtime, 'close lets a request under way end, refuses later ones, and ends the process', async () => {
      const control = (path: string) => client().send({ path, method: 'GET', headers: {}, chunks: [] })
      const last = post(client(), '/closing', 'Last')
      await expect.poll(async () => (await control('/seen'))?.text).toContain('"Last"')
      await control('/close')
      expect(await post(client(), '/closing', 'Late')).toEqual([503, 'shutting_down'])
      const releasedAt = performance.now()
      await control('/release')
      expect(await last).toEqual([200, undefined])
      expect(await server?.ended).toMatchObject({ code: 0, errors: '' })
      expect(performance.now() - releasedAt).toBeLessThan(EXIT_MS)
    })
  })

  check('frameworks', runtime, 'an authentic message is handled, a forged one is not', async () => {
    const ended = await start('frameworks.mjs').ended
    expect(ended.outcomes).toEqual({ Express: [200, 401], Koa: [200, 401], Fastify: [200, 401] })
    expectGracefulEnd(ended)
  })

  check('sqlite', runtime, 'what a killed process left is handled, redriven and sent by the next one', async () => {
    const killed = start('durable.mjs', 'store', files, peers.refused.url)
    await killed.outcomeOf('stored')
    killed.child.kill('SIGKILL')
    expect(await killed.ended).toMatchObject({ outcomes: { inbox: 200, destination: true }, code: null })

    const ended = await start('durable.mjs', 'resume', files, peers.ok.url).ended
    expect(ended.outcomes).toEqual({
      inbox: { reason: 'handler_failed', event: 'Order Completed', calls: 2, left: 0 },
      destination: 'delivered',
    })
    expectGracefulEnd(ended)
  })

  describe('engines', () => {
    const urls = { kv: '', bullmq: inject('redisUrl'), 'pg-boss': inject('databaseUrl') }
    const name = `everywhere_${runtime.toLowerCase().replace(/\W/g, '_')}_${process.pid}`
    afterAll(async () => {
      const redis = new Redis(urls.bullmq as string)
      const keys = await redis.keys(`bull:${name}:*`)
      if (keys.length > 0) await redis.del(keys)
      await redis.quit()
      const database = new pg.Client({ connectionString: urls['pg-boss'] as string })
      await database.connect()
      await database.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`)
      await database.end()
    })

    for (const engine of ['kv', 'bullmq', 'pg-boss'] as const) {
      check(engine, runtime, `${engine}: stores, handles, redrives`, async () => {
        const ended = await start('engines.mjs', engine, name, urls[engine] as string).ended
        const outcome = { status: 200, reason: 'handler_failed', event: 'Order Completed', errors: ['handler_failed'] }
        expect(ended.outcomes).toEqual({ [engine]: outcome })
        expectGracefulEnd(ended)
      })
    }
  })

  describe('sending', () => {
    let ended: Ended
    beforeAll(async () => {
      ended = await sent
    })

    check('send', runtime, 'a message arrives, signed', () => {
      expect(ended.outcomes.send).toBe(200)
      const [request] = peers.ok.requests
      expect(request?.headers['x-signature']).toBe(hmac(request?.bytes as Buffer, 'everywhere'))
    })

    check('send', runtime, 'no complete response within five seconds is a timeout', () => {
      for (const step of ['timeout', 'timeout of a response without an end']) {
        const { result, durationMs } = ended.outcomes[step] as { result: string; durationMs: number }
        expect(result).toBe('timeout')
        expect(durationMs).toBeGreaterThanOrEqual(5_000)
        expect(durationMs).toBeLessThan(5_900)
      }
    })

    check('send', runtime, 'a connection that fails, a response beyond its limit, and a dispatcher of undici', () => {
      const failed = { 'connection refused': 'refused', reset: 'reset', garbage: 'http' }
      const others = { 'a status text without an end': 'http', 'an Agent of undici': 200 }
      expect(ended.outcomes).toMatchObject({ ...failed, ...others })
    })

    check('send', runtime, 'a destination retries, redrives, and closes its circuit again', () => {
      expect(ended.outcomes).toMatchObject({
        retry: ['retrying', 'delivered'],
        redrive: ['refused', 'delivered'],
        circuit: { states: ['open', 'closed'], statuses: ['retrying', 'delivered'] },
      })
    })

    check(
      'certificates',
      runtime,
      'no byte goes to a server whose certificate must be refused, which the error says',
      () => {
        for (const { name, fault, bytes } of peers.tls) {
          const outcome = ended.outcomes[name] as Record<string, unknown>
          if (fault === 'private_ca') {
            expect(outcome).toMatchObject({ sender: 'tls', trusting: 200, trustingClient: 'posted' })
            expect(outcome.client).not.toBe('posted')
            continue
          }
          const code = fault === 'self_signed' ? 'self_signed' : 'tls'
          expect(outcome).toMatchObject({ sender: code, trusting: code })
          expect([outcome.client, outcome.trustingClient]).not.toContain('posted')
          expect({ name, bytes }).toEqual({ name, bytes: 0 })
        }
      },
    )

    check('addresses', runtime, 'nothing connects to a private address, or to a name that has one', () => {
      const refused = 'private_address'
      expect(ended.outcomes).toMatchObject({ 'private address': refused, 'private address of a name': refused })
      expect(peers.guarded.connections).toBe(0)
    })

    check('client', runtime, 'calls reach a handler through a collector', () => {
      const outcome = { undelivered: 0, event: 'Order Completed' }
      expect(ended.outcomes['client, collector, destination, receiver']).toEqual(outcome)
    })

    check('client', runtime, 'a client that is not closed posts before the process ends', async () => {
      const before = peers.ok.requests.length
      expectGracefulEnd(await start('unclosed.mjs', peers.ok.url).ended)
      expect(peers.ok.requests).toHaveLength(before + 1)
      expect(`${peers.ok.requests.at(-1)?.bytes}`).toContain('"event":"Order Completed"')
    })

    check('end', runtime, 'nothing is left when everything is closed', () => expectGracefulEnd(ended))
  })
})

describe('workerd', () => {
  let script: string
  let storage: string
  let worker: Awaited<ReturnType<typeof startWorkerd>>
  beforeAll(async () => {
    script = await bundleWorker(project.directory)
    storage = await mkdtemp(join(tmpdir(), 'hookline-'))
  })
  afterAll(async () => {
    await worker?.stop()
    await rm(storage, { recursive: true, force: true })
  })

  checkReceiving('fetch', 'workerd', async () => {
    worker = await startWorkerd(script, storage)
    return worker.port
  })

  const client = () => clientOfHttp1(worker.port)
  const read = async (path: string) => {
    const reply = await client().send({ path, method: 'GET', headers: {}, chunks: [] })
    return JSON.parse(reply?.text ?? '')
  }

  check('fetch', 'workerd', 'sign, verify and parse', async () => {
    const bytes = Buffer.from('{"type":"delete","userId":"user-1"}')
    expect(await read('/functions')).toMatchObject({
      signature: hmac(bytes, 'everywhere'),
      verified: [true, false],
      parsed: { type: 'delete', userId: 'user-1' },
    })
  })

  check('kv', 'workerd', 'in a Durable Object: stores, handles, redrives, and takes up after a restart', async () => {
    const state = () => read('/inbox/state')
    expect(await post(client(), '/inbox', 'Authentic')).toEqual([200, undefined])
    expect(await post(client(), '/inbox', 'Authentic')).toEqual([200, undefined])
    expect(await post(client(), '/inbox', 'Forged', { secret: 'another' })).toEqual([401, 'signature_mismatch'])
    expect(await post(client(), '/inbox', 'Fail once')).toEqual([200, undefined])
    await expect.poll(state).toMatchObject({ handled: ['Authentic'], letters: ['handler_failed'] })
    expect(await read('/inbox/redrive')).toBe(1)
    await expect.poll(state).toMatchObject({ handled: ['Authentic', 'Fail once'], letters: [] })
    expect(await post(client(), '/inbox', 'Hang')).toEqual([200, undefined])
    await expect.poll(state).toMatchObject({ health: { active: 1 } })
    await worker.stop()
    worker = await startWorkerd(script, storage)
  })

  const refuse = (row: Row, names: readonly string[], sentence: RegExp) =>
    check(
      row,
      'workerd',
      `refuses to start: ${names.join(', ')}`,
      async () => {
        const { refusals } = await read('/functions')
        for (const name of names) {
          expect(refusals[name]).toMatch(sentence)
          quote(refusals[name].match(sentence)[0])
        }
      },
      'refuses',
    )
  const NO_CERTIFICATES =
    /(?<=^TypeError: )Sending needs a runtime that exposes the certificate of a server\. .*dispatcher`\.$/
  refuse('send', ['sender', 'destination'], NO_CERTIFICATES)
  refuse('client', ['client'], NO_CERTIFICATES)
  refuse('sqlite', ['queue'], /(?<=^HooklineError: .*: )this runtime has no SQLite\. .* another engine\.$/)
})

describe('docs/hosts.md', () => {
  checkPage(new URL('../../../docs/hosts.md', import.meta.url))
})

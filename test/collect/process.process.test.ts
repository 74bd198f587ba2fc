/** What a client does to its process: what it keeps alive and for how long, and what its end does. */

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../support/needs.ts'

const { href: module } = new URL('../../src/client.ts', import.meta.url)
let requests = 0
const server = createServer((request, response) => {
  requests++
  request.resume()
  request.on('end', () => response.end('{"success":true}'))
})

beforeAll(async () => {
  server.keepAliveTimeout = 0 // The client alone ends a connection: after 30 seconds, which no test waits for.
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

/** Runs a program that has a client, and returns what it wrote once it has ended by itself. */
async function run(program: string, env: Readonly<Record<string, string>> = {}) {
  const { port } = server.address() as AddressInfo
  const code = `
    import { createClient } from ${JSON.stringify(module)}
    const settings = { endpoint: 'http://127.0.0.1:${port}/v1/batch', random: () => 0.1, flushAfterMs: 3_600_000 }
    const client = createClient('secret-write-key', settings)
    const call = { userId: 'secret-user', event: 'Secret Event' }
    ${program}`
  const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', code]
  return promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env }, timeout: 20_000 })
}

const LOST =
  'not delivered: The process ended while the client was open. Call `await client.close()` before the process ends or calls process.exit().'

describe('the process ends by itself', () => {
  it('with a client that was never used', async () => {
    await run('')
  })

  it('with calls that wait for a flush in an hour, which are posted first', async () => {
    const before = requests
    const { stderr } = await run('client.track(call)')
    expect([requests - before, stderr]).toEqual([1, ''])
  })

  const [track, later] = ['client.track(call)', "process.once('beforeExit', () =>"]
  it.each([
    ['a listener of beforeExit', `${later} ${track})`, 1],
    ['one that records while others are on their way', `${track}; ${later} setImmediate(() => ${track}))`, 2],
  ])('with calls of %s, which are posted too', async (_what, program, posted) => {
    const before = requests
    const { stderr } = await run(program)
    expect([requests - before, stderr]).toEqual([posted, ''])
  })

  it('after a flush, for which it stays alive, with a connection that is kept', async () => {
    const flush = "client.track(call); await client.flush(); console.log('flushed')"
    const { stdout } = await run(`process.once('beforeExit', () => console.log('over')); ${flush}`)
    expect(stdout).toBe('flushed\nover\n')
  })
})

describe('the process ends at once', () => {
  const exits = { code: 0, stderr: '' }
  /** Runs a program that may fail. */
  async function end(program: string): Promise<{ code: unknown; signal?: unknown; stderr: string; posted: number }> {
    const before = requests
    const result = await run(program).catch((error) => error)
    return { ...exits, ...result, posted: requests - before }
  }

  it('by process.exit(): says how many calls of all clients are lost', async () => {
    const others = 'Array.from({ length: 20 }, () => createClient("key", settings))'
    const program = `const others = ${others}; client.track(call); others[3].track(call); process.exit(7)`
    expect(await end(program)).toMatchObject({ code: 7, stderr: `hookline: 2 calls ${LOST}\n`, posted: 0 })
  })

  it.each([
    ['no calls', 'process.exit()'],
    ['delivered calls', 'client.track(call); await client.flush(); process.exit()'],
    ['calls that close() returned', 'client.track(call); await client.close({ timeoutMs: 0 }); process.exit()'],
    ['stderr closed', 'client.track(call); (await import("node:fs")).closeSync(2); process.exit()'],
  ])('with %s: says nothing', async (_what, program) => {
    expect(await end(program)).toMatchObject(exits)
  })

  it('by SIGTERM: runs no code, unless the program listens and closes the client', needs('POSIX'), async () => {
    const killed = 'client.track(call); setInterval(() => {}, 1000); process.kill(process.pid, "SIGTERM")'
    const listen = 'process.once("SIGTERM", () => client.close().then(() => process.exit()));'
    expect(await end(killed)).toMatchObject({ signal: 'SIGTERM', stderr: '', posted: 0 })
    expect(await end(listen + killed)).toMatchObject({ code: 0, stderr: '', posted: 1 })
  })
})

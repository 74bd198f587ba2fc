/** What a client does to its process: what it keeps alive and for how long, and what its end does. */

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { serveKept } from '../send/set-up.ts'
import { needs } from '../support/needs.ts'

const { href: module } = new URL('../../src/client.ts', import.meta.url)

/** Runs a program that has a client to its end. Returns how it ended, what it wrote, and how many requests it made. */
async function run(program: string): Promise<object> {
  const { url, seen } = await serveKept() // The client alone ends a connection: after 30 seconds, which no test waits for.
  const code = `
    import { createClient } from ${JSON.stringify(module)}
    const settings = { endpoint: '${url}', random: () => 0.1, flushAfterMs: 3_600_000 }
    const client = createClient('secret-write-key', settings)
    const call = { userId: 'secret-user', event: 'Secret Event' }
    ${program}`
  const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', code]
  const result = await promisify(execFile)(process.execPath, args, { timeout: 20_000 }).catch((error) => error)
  return { code: 0, ...result, posted: seen.requests }
}

const quiet = { code: 0, stderr: '' }
const LOST =
  'not delivered: The process ended while the client was open. Call `await client.close()` before the process ends or calls process.exit().'

describe('the process ends by itself', () => {
  const [track, later] = ['client.track(call)', "process.once('beforeExit', () =>"]
  it.each([
    ['a client that was never used', '', 0],
    ['calls that wait for a flush in an hour, which are posted first', track, 1],
    ['calls of a listener of beforeExit, too', `${later} ${track})`, 1],
    [
      'calls that are recorded while others are on their way, too',
      `${track}; ${later} setImmediate(() => ${track}))`,
      2,
    ],
  ])('with %s', async (_what, program, posted) => {
    expect(await run(program)).toMatchObject({ ...quiet, posted })
  })

  it('after a flush, for which it stays alive, with a connection that is kept', async () => {
    const flush = "client.track(call); await client.flush(); console.log('flushed')"
    const result = await run(`process.once('beforeExit', () => console.log('over')); ${flush}`)
    expect(result).toMatchObject({ ...quiet, stdout: 'flushed\nover\n' })
  })
})

describe('the process ends at once', () => {
  it('by process.exit(): says how many calls of all clients are lost', async () => {
    const others = 'Array.from({ length: 20 }, () => createClient("key", settings))'
    const program = `const others = ${others}; client.track(call); others[3].track(call); process.exit(7)`
    expect(await run(program)).toMatchObject({ code: 7, stderr: `hookline: 2 calls ${LOST}\n`, posted: 0 })
  })

  it.each([
    ['no calls', 'process.exit()'],
    ['delivered calls', 'client.track(call); await client.flush(); process.exit()'],
    ['calls that close() returned', 'client.track(call); await client.close({ timeoutMs: 0 }); process.exit()'],
    ['stderr closed', 'client.track(call); (await import("node:fs")).closeSync(2); process.exit()'],
  ])('with %s: says nothing', async (_what, program) => {
    expect(await run(program)).toMatchObject(quiet)
  })

  it('by SIGTERM: runs no code, unless the program listens and closes the client', needs('POSIX'), async () => {
    const killed = 'client.track(call); setInterval(() => {}, 1000); process.kill(process.pid, "SIGTERM")'
    const listen = 'process.once("SIGTERM", () => client.close().then(() => process.exit()));'
    expect(await run(killed)).toMatchObject({ signal: 'SIGTERM', stderr: '', posted: 0 })
    expect(await run(listen + killed)).toMatchObject({ ...quiet, posted: 1 })
  })
})

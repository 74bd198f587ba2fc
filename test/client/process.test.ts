/** What a client does to its process: it does not keep it alive, but for who waits, and it logs when DEBUG says so. */

import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const module = fileURLToPath(new URL('../../src/client/index.ts', import.meta.url))
let failing = 0
let requests = 0
const server = createServer((request, response) => {
  requests++
  request.resume()
  request.on('end', () => response.writeHead(failing-- > 0 ? 500 : 200).end('{"success":true}'))
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
  const options = `{ endpoint: 'http://127.0.0.1:${port}/v1/batch', random: () => 0.1 }`
  const code = `
    import { createClient } from ${JSON.stringify(module)}
    const client = createClient('secret-write-key', ${options})
    const call = { userId: 'secret-user', event: 'Secret Event' }
    ${program}`
  const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', code]
  return promisify(execFile)(process.execPath, args, { env: { ...process.env, ...env }, timeout: 20_000 })
}

describe('the process ends by itself', () => {
  it('with a client that was never used', async () => {
    await run('')
  })

  it('with calls that wait: they keep nothing alive', async () => {
    const before = requests
    await run('client.track(call)')
    expect(requests).toBe(before)
  })

  it('with a connection that is kept', async () => {
    const { stdout } = await run("client.track(call); await client.flush(); console.log('flushed')")
    expect(stdout).toBe('flushed\n')
  })
})

describe('the process waits', () => {
  it.each(['flush', 'close'])('for %s(), retries included', async (method) => {
    failing = 2
    const { stdout } = await run(`client.track(call); await client.${method}(); console.log('done')`)
    expect(stdout).toBe('done\n')
    expect(failing).toBeLessThan(0)
  })
})

describe('DEBUG=analytics', () => {
  it('tells what happens to a call, and neither the write key nor what is in the call', async () => {
    failing = 1
    const { stderr } = await run('client.track(call); await client.close()', { DEBUG: 'analytics' })
    expect(stderr).toMatch(/analytics track: enqueued, \d+ bytes/)
    expect(stderr).toMatch(/analytics batch 1: flushed, calls 1, bytes \d+/)
    expect(stderr).toMatch(/analytics batch 1: attempt 1: status 500/)
    expect(stderr).toMatch(/analytics batch 1: retried in \d+ ms/)
    expect(stderr).toMatch(/analytics batch 1: attempt 2: status 200/)
    expect(stderr).not.toMatch(/secret/i)
    expect(stderr).not.toContain(Buffer.from('secret-write-key:').toString('base64'))
  })

  it('tells what is given up and what is dropped', async () => {
    failing = 1
    const program = `
      const options = { maxRetries: 0, maxQueued: 1, flushAt: 1, whenFull: 'drop_oldest', onError() {} }
      const other = createClient('k', { endpoint: process.env.ENDPOINT, ...options })
      other.track(call)
      other.track(call)
      await other.close()`
    const { port } = server.address() as AddressInfo
    const { stderr } = await run(program, { DEBUG: 'analytics', ENDPOINT: `http://127.0.0.1:${port}/` })
    expect(stderr).toMatch(/analytics dropped 1, while 1 wait to be delivered/)
    expect(stderr).toMatch(/analytics batch 1: given up, out_of_retries/)
  })

  it.each([{}, { DEBUG: 'other' }])('is off with %o', async (env) => {
    failing = 0
    const { stderr } = await run('client.track(call); await client.close()', env)
    expect(stderr).toBe('')
  })
})

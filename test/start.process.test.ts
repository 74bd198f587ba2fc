/** The demo behind `npm start`: what it prints, how it ends, and that it can tell a wrong outcome. */

import { spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { expectations } from '../examples/demo/expectations.ts'
import { toCurl } from '../examples/demo/table.ts'
import { bin } from '../tools/command/test/command.ts'
import { type Child, startNode } from './docs/child.ts'
import { needs } from './support/needs.ts'

const START = fileURLToPath(new URL('../examples/start.ts', import.meta.url))

let demo: Child | undefined
let data = ''

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'hookline-demo-'))
})

afterEach(async () => {
  demo?.kill('SIGKILL')
  await demo?.exit
  await rm(data, { recursive: true, maxRetries: 9 })
})

test('with --once everything passes its stations, a line for each, and it ends with 0', async () => {
  demo = startNode([START, '--once'], { env: { PORT: '0', DATA: data } })

  expect(await demo.exit).toBe(0)
  expect(linesOf(demo)).toEqual([
    '✓ identify ms ms ms ms user-1 is Ada Lovelace',
    '✓ page ms ms ms ms user-1 looked at /pricing',
    '✓ screen ms ms ms ms user-1 opened Basket on a Pixel 9',
    '✓ track ms ms ms ms user-1: Order Completed, 39.95 EUR',
    '✓ group ms ms ms ms user-1 belongs to Analytical Engines',
    '✓ alias ms ms ms ms anonymous-1 is user-1',
    '✓ audience – – ms ms user-1 entered High Value Users',
    '✓ delete – ms ms ms user-2 wants to be forgotten',
    '✓ track, forged – – – – 401 signature_mismatch',
    '✓ track, truncated – – – – 401 signature_mismatch',
  ])
  expect(demo.output).not.toMatch(/curl|token=/)
})

test('`hookline demo` is the same from the package', async () => {
  demo = startNode([bin, 'demo', '--once', '--port', '0', '--data', data])
  expect(await demo.exit).toBe(0)
  expect(linesOf(demo)).toHaveLength(10)
})

test('it stays up: the command it prints goes through every station, its page opens, and SIGINT closes everything', {
  ...needs('POSIX', 'curl'),
  timeout: 60_000,
}, async () => {
  demo = startNode([START], { env: { PORT: '0', DATA: data } })
  const [, url = ''] = await demo.printed(/^(http:\/\/127\.0\.0\.1:\d+\/hookline\/#token=\S+)\n\n$/m)
  const [command = ''] = /^curl [\s\S]*?}'\n$/m.exec(demo.output) ?? []

  expect(paste(command)).toContain('{"success":true,"accepted":1,"refused":[]}')
  await demo.printed(/^✓ [\d:.]{12} {2}destination +delivered +track$/m)
  expect(demo.output).toMatch(/^✓ [\d:.]{12} {2}collector +accepted +track$/m)
  await demo.printed(/^✓ [\d:.]{12} {2}receiver +handled +user-1: Order Refunded, 39\.95 EUR$/m)
  expect(paste(command.replace('demo-write-key', 'another-key'))).toContain('write_key_unknown')
  await demo.printed(/^✗ [\d:.]{12} {2}collector +401 write_key_unknown: /m)

  const headers = { 'x-hookline-inspector': url.replace(/.*#token=/, '') }
  const get = (path: string) => fetch(new URL(path, url), { headers })
  expect(await (await get('.')).text()).toContain('src="page.js"')
  const parts = ['receiver', 'destination', 'warehouse', 'collector'].map((name) => expect.objectContaining({ name }))
  expect(await (await get('api/setup')).json()).toMatchObject({ access: 'write', parts, senders: ['sender'] })
  expect((await fetch(new URL('api/setup', url))).status).toBe(403)
  expect(await readUntil(await get('api/stream'), /"user":"grace"/)).toContain('"user":"user-1"')
  expect(demo.output).not.toContain('grace')

  demo.kill('SIGINT')
  expect(await demo.exit).toBe(0)
})

test('a receiver that accepts everything and calls no handler ends it with 1', async () => {
  demo = startBroken('/webhooks', 'response.end(\'{"ok":true}\')', ['--once'])
  expect(await demo.exit).toBe(1)
  expect(linesOf(demo)).toContain(
    '✗ identify ms ms ms – nothing (expected user-1 is Ada Lovelace; did not pass receiver)',
  )
  expect(linesOf(demo)).toContain('✗ track, forged – – – – 200 (expected 401 signature_mismatch)')
})

test('killed while the receiver cannot be reached, it goes on with what was left', {
  ...needs('POSIX'),
  timeout: 120_000,
}, async () => {
  demo = startBroken('/webhooks', 'request.socket.destroy()')
  await demo.printed(/^http:\S+token=\S+$/m)
  expect(linesOf(demo).filter((line) => line.startsWith('✓'))).toEqual([])
  demo.kill('SIGKILL')
  await demo.exit

  demo = startNode([START], { env: { PORT: '0', DATA: data } })
  for (const { saw } of expectations.slice(0, 8))
    await demo.printed(new RegExp(`^✓ [\\d:.]{12} {2}receiver +handled +${saw}, from last time$`, 'm'))
  await demo.printed(/^http:\S+token=\S+$/m) // From here on, it ends in order.

  demo.kill('SIGTERM')
  expect(await demo.exit).toBe(0)
})

test('an option that does not exist ends it with 1', async () => {
  demo = startNode([START, '--bogus'], { env: { PORT: '0', DATA: data } })
  expect(await demo.exit).toBe(1)
  expect(demo.output).toContain('--bogus')
})

test('the command that it prints is quoted for a shell', needs('POSIX'), () => {
  const call = { name: "O'Hara $HOME `id`" }
  const command = toCurl('http://127.0.0.1:1/v1/track', "it's", call).replace(/^curl -i /, 'printf "%s\\n" ')
  const { stdout } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
  const header = ['-H', 'content-type: application/json']
  const words = ['http://127.0.0.1:1/v1/track', '-u', "it's:", ...header, '--data-raw', JSON.stringify(call), '']
  expect(stdout.split('\n')).toEqual(words)
})

/** Reads a stream until it has sent what is looked for. */
async function readUntil({ body }: Response, pattern: RegExp): Promise<string> {
  let text = ''
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString()
    if (pattern.test(text)) break
  }
  return text
}

/** The lines of the table, without their spaces and without the numbers, which are never the same. */
function linesOf({ output }: Child): string[] {
  const lines = output.split('\n').filter((line) => /^[✓✗]/.test(line))
  return lines.map((line) => line.replaceAll(/\d+ ms/g, 'ms').replaceAll(/ +/g, ' '))
}

/** Starts the demo in a Node whose server does something else with the requests to a path. */
function startBroken(path: string, instead: string, options: readonly string[] = []): Child {
  const preload = `
    import { Server } from 'node:http'
    const emit = Server.prototype.emit
    Server.prototype.emit = function (name, request, response) {
      if (name !== 'request' || !request.url.startsWith('${path}')) return emit.apply(this, arguments)
      request.resume()
      ${instead}
      return true
    }`
  const args = ['--import', `data:text/javascript,${encodeURIComponent(preload)}`, START, ...options]
  return startNode(args, { env: { PORT: '0', DATA: data } })
}

/** What a shell makes of the command. */
function paste(command: string): string {
  const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
  return stdout + stderr
}

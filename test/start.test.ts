/** The demo behind `npm start`: what it prints, how it ends, and that it can tell a wrong outcome. */

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { expectations, findFaults, STATIONS, toAnswer } from '../examples/demo/expectations.ts'
import { listen } from '../examples/demo/listen.ts'
import { toCurl, toLine } from '../examples/demo/table.ts'
import { bin } from '../tools/command/test/command.ts'
import { type Child, startNode } from './docs/child.ts'
import { watchConsole } from './support/console.ts'
import { needs } from './support/needs.ts'

const START = fileURLToPath(new URL('../examples/start.ts', import.meta.url))

const URL_OF_PAGE = /^http:\S+token=\S+$/m

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

test('with --once everything passes its stations, a line for each, and it ends with 0', {
  timeout: 30_000,
}, async () => {
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
  expect(demo.output).toMatch(/^10 of 10 came out as they must\.\n$/m)
  expect(demo.output).not.toContain('curl')
  expect(demo.output).not.toContain('token=')
})

test('`hookline demo` is the same from the package', { timeout: 30_000 }, async () => {
  demo = startNode([bin, 'demo', '--once', '--port', '0', '--data', data])
  expect(await demo.exit).toBe(0)
  expect(demo.output).toMatch(/^10 of 10 came out as they must\.\n$/m)
})

test('it stays up: the command it prints goes through every station, its page opens, and SIGINT closes everything', {
  ...needs('POSIX'),
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
  expect(demo.output).toContain('The write key is demo-write-key.')

  const { get } = await openPage(url)
  expect(await (await get('.')).text()).toContain('src="page.js"')
  expect(await (await get('api/setup')).json()).toMatchObject({
    access: 'write',
    parts: [
      { name: 'receiver', hasQueue: true },
      { name: 'destination', hasQueue: true },
      { name: 'warehouse', hasQueue: true },
      { name: 'collector', hasQueue: false },
    ],
    senders: ['sender'],
  })
  expect((await fetch(new URL('api/setup', url))).status).toBe(403)
  expect(await readUntil(await get('api/stream'), /"user":"grace"/)).toContain('"user":"user-1"')
  expect(demo.output).not.toContain('grace')

  demo.kill('SIGINT')
  expect(await demo.exit).toBe(0)
})

describe('it ends with 1 when', () => {
  test('a receiver accepts everything and calls no handler', { timeout: 30_000 }, async () => {
    demo = startBroken('/webhooks', 'response.end(\'{"ok":true}\')', ['--once'])

    expect(await demo.exit).toBe(1)
    expect(linesOf(demo)).toContain(
      '✗ identify ms ms ms – nothing (expected user-1 is Ada Lovelace; did not pass receiver)',
    )
    expect(linesOf(demo)).toContain('✗ track, forged – – – – 200 (expected 401 signature_mismatch)')
    expect(demo.output).toContain('0 of 10 came out as they must.')
  })

  test('the collector refuses the batch', { timeout: 30_000 }, async () => {
    demo = startBroken('/analytics', 'response.writeHead(401).end()', ['--once'])

    expect(await demo.exit).toBe(1)
    expect(demo.output).toMatch(/✗ track .* 401.* \(expected user-1: Order Completed, 39\.95 EUR; did not pass coll/)
    expect(demo.output).toContain('4 of 10 came out as they must.')
  })
})

test('killed while the receiver cannot be reached, it goes on with what was left', {
  ...needs('POSIX'),
  timeout: 120_000,
}, async () => {
  demo = startBroken('/webhooks', 'request.socket.destroy()')
  await demo.printed(URL_OF_PAGE)
  expect(linesOf(demo)).toContain(
    '✗ delete – ms – – retrying, reset (expected user-2 wants to be forgotten; did not pass destination, receiver)',
  )
  expect(linesOf(demo)).toContain('✗ track, forged – – – – reset (expected 401 signature_mismatch)')
  expect(demo.output).toContain('0 of 10 came out as they must.')
  demo.kill('SIGKILL')
  await demo.exit

  demo = startNode([START], { env: { PORT: '0', DATA: data } })
  await demo.printed(/^10 of 10 came out as they must\.$/m)
  expect(demo.output).toMatch(/^From last time, in .*: \d+ messages to deliver, 0 to handle$/m)
  for (const { saw } of expectations.slice(0, 8))
    await demo.printed(new RegExp(`^✓ [\\d:.]{12} {2}receiver +handled +${saw}, from last time$`, 'm'))

  demo.kill('SIGTERM')
  expect(await demo.exit).toBe(0)
})

describe('one line says', () => {
  test('that an option does not exist', { timeout: 30_000 }, async () => {
    demo = startNode([START, '--bogus'], { env: { PORT: '0', DATA: data } })

    expect(await demo.exit).toBe(1)
    expect(demo.output).toBe('--bogus is not an option. Valid options: --once.\n')
  })

  const listenOn = async (port: string) => {
    const printed = watchConsole()
    vi.stubEnv('PORT', port)
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => {
      throw new Error('It has ended.')
    })
    onTestFinished(() => {
      vi.unstubAllEnvs()
      exit.mockRestore()
    })
    await expect(listen(express())).rejects.toThrow('It has ended.')
    expect(exit).toHaveBeenCalledWith(1)
    return printed.map(({ text }) => text)
  }

  test('that a port is taken', async () => {
    const neighbour = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void neighbour.close())
    await once(neighbour, 'listening')
    const { port } = neighbour.address() as AddressInfo

    expect(await listenOn(String(port))).toEqual([`Port ${port} is taken. Take any free one: PORT=0`])
  })

  test('that a port is none', async () => {
    expect(await listenOn('http')).toEqual(['PORT: must be a whole number from 0 to 65535.'])
  })
})

test('the check of an outcome looks at every station and at the outcome', () => {
  const [identify] = expectations
  if (identify === undefined) throw new Error('The demo sends nothing.')
  const passed = new Map(STATIONS.map((station, index) => [station, index * 1.4]))
  const right = { passed, saw: identify.saw }
  const late = { passed: new Map([...passed].slice(0, -1)), saw: identify.saw }

  expect(findFaults(identify, right)).toEqual([])
  expect(toLine(identify, right)).toMatch(/^✓ identify +0 ms +1 ms +3 ms +4 ms {2}user-1 is Ada Lovelace$/)
  expect(findFaults(identify, late)).toEqual(['did not pass receiver'])
  expect(findFaults(identify, { ...right, saw: 'nothing' })).toEqual(['expected user-1 is Ada Lovelace'])
  expect(toLine(identify, late)).toMatch(/^✗ identify .* – {2}user-1 is Ada Lovelace \(did not pass receiver\)$/)
})

test.each([
  ['401 signature_mismatch', { status: 401, body: '{"status":401,"code":"signature_mismatch"}' }],
  ['200', { status: 200, body: '{"ok":true}' }],
  ['refused', { error: 'refused', body: '' }],
] as const)('an answer reads %s', (text, answer) => {
  expect(toAnswer({ url: 'http://127.0.0.1/', at: new Date(0), durationMs: 1, ok: false, ...answer })).toBe(text)
})

test('the command quotes for a shell', () => {
  const call = { name: "O'Hara $HOME `id`" }

  const command = toCurl('http://127.0.0.1:1/v1/track', "it's", call).replace(/^curl -i /, 'printf "%s\\n" ')

  const { stdout } = spawnSync('sh', ['-c', command], { encoding: 'utf8' })
  expect(stdout.split('\n')).toEqual([
    'http://127.0.0.1:1/v1/track',
    '-u',
    "it's:",
    '-H',
    'content-type: application/json',
    '--data-raw',
    JSON.stringify(call),
    '',
  ])
})

async function openPage(url: string) {
  const headers = { 'content-type': 'application/json', 'x-hookline-inspector': url.replace(/.*#token=/, '') }
  return {
    get: (path: string) => fetch(new URL(path, url), { headers }),
    post: (path: string, body: object) =>
      fetch(new URL(path, url), { method: 'POST', headers, body: JSON.stringify(body) }),
  }
}

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

/** What a shell makes of the command; where there is no curl, a function with its name stands in. */
function paste(command: string): string {
  const hasCurl = spawnSync('curl', ['--version']).error === undefined
  const stand = hasCurl ? '' : `curl() { "${process.execPath}" -e '${FETCH_LIKE_CURL}' -- "$@"; }\n`
  const { stdout, stderr } = spawnSync('sh', ['-c', stand + command], { encoding: 'utf8' })
  return stdout + stderr
}

const FETCH_LIKE_CURL = `
  const [, url, ...rest] = process.argv.slice(1)
  const values = (flag) => rest.filter((_, index) => rest[index - 1] === flag)
  const headers = values("-H").map((header) => header.split(": "))
  headers.push(["authorization", "Basic " + btoa(values("-u")[0])])
  fetch(url, { method: "POST", headers, body: values("--data-raw")[0] }).then(async (answer) => console.log(await answer.text()))
`

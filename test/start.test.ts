/** The demo behind `npm start`: what it prints, how it ends, and that it can tell a wrong outcome. */

import { spawnSync } from 'node:child_process'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { createDeliveries, isRight, toCurl, toLine } from '../examples/demo/deliveries.ts'
import { type Child, startNode } from './docs/child.ts'

const START = fileURLToPath(new URL('../examples/start.ts', import.meta.url))

let demo: Child | undefined
let neighbour: Server | undefined

afterEach(() => {
  demo?.kill('SIGKILL')
  neighbour?.close()
})

test('with --once it sends nine requests, a line for each, and ends with 0', { timeout: 30_000 }, async () => {
  demo = startNode([START, '--once'], { env: { PORT: '0' } })

  expect(await demo.exit).toBe(0)
  const lines = demo.output.split('\n').filter((line) => /^[✓✗]/.test(line))
  expect(lines).toEqual([
    '✓ page                 200  user-1 looked at /pricing',
    '✓ screen               200  user-1 opened Basket on a Pixel 9',
    '✓ identify             200  user-1 is Ada Lovelace',
    '✓ track                200  user-1: Order Completed, 39.95 EUR',
    '✓ alias                200  anonymous-1 is user-1',
    '✓ group                200  user-1 belongs to Analytical Engines',
    '✓ delete               200  user-1 wants to be forgotten',
    '✓ track, forged        401  signature_mismatch',
    '✓ track, truncated     401  signature_mismatch',
  ])
  expect(demo.output).toContain('9 of 9 came out as they must.')
  expect(demo.output).not.toContain('curl')
})

test('it stays up, and the command it prints works when it is pasted', { timeout: 30_000 }, async () => {
  demo = startNode([START], { env: { PORT: '0' } })
  const [command] = await demo.printed(/^curl [\s\S]*?'\n$/m)

  expect(paste(command)).toContain('{"ok":true}')
  await demo.printed(/✓ 200 user-1: Order Refunded, 39\.95 EUR/)
  expect(paste(command.replace('Refunded', 'Completed'))).toContain('signature_mismatch')
  await demo.printed(/✗ 401 signature_mismatch/)
})

test('it ends with 1 when an outcome was wrong', { timeout: 30_000 }, async () => {
  const answersAlways200 = 'globalThis.fetch = async () => Response.json({ ok: true })'

  demo = startNode(['--import', `data:text/javascript,${encodeURIComponent(answersAlways200)}`, START, '--once'], {
    env: { PORT: '0' },
  })

  expect(await demo.exit).toBe(1)
  expect(demo.output).toContain('✗ track, forged        200  nothing (expected 401, signature_mismatch)')
  expect(demo.output).toContain('0 of 9 came out as they must.')
})

test('it ends with 1 when the receiver cannot be reached', { timeout: 30_000 }, async () => {
  const failsAlways = "globalThis.fetch = async () => { throw new Error('unreachable') }"

  demo = startNode(['--import', `data:text/javascript,${encodeURIComponent(failsAlways)}`, START, '--once'], {
    env: { PORT: '0' },
  })

  expect(await demo.exit).toBe(1)
  expect(demo.output).toContain('✗ page                   0  Error: unreachable')
})

test('a port that is taken is one line', { timeout: 30_000 }, async () => {
  const server = createServer()
  neighbour = server
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo

  demo = startNode([START, '--once'], { env: { PORT: String(port) } })

  expect(await demo.exit).toBe(1)
  expect(demo.output).toBe(`Port ${port} is taken. Take any free one: PORT=0 npm start\n`)
})

test('a port that is no port is one line', { timeout: 30_000 }, async () => {
  demo = startNode([START, '--once'], { env: { PORT: 'http' } })

  expect(await demo.exit).toBe(1)
  expect(demo.output).toBe('PORT: must be a whole number from 0 to 65535.\n')
})

test('the check of an outcome looks at the status and at what came of it', () => {
  const [page] = createDeliveries('s')
  if (page === undefined) throw new Error('The demo sends nothing.')

  expect(isRight(page, page.expected)).toBe(true)
  expect(isRight(page, { ...page.expected, status: 202 })).toBe(false)
  expect(isRight(page, { ...page.expected, saw: 'nothing' })).toBe(false)
  expect(toLine(page, { status: 202, saw: 'nothing' })).toMatch(
    /^✗ page .* 202 {2}nothing \(expected 200, user-1 looked at/,
  )
})

test('the command quotes for a shell', () => {
  const request = { method: 'POST', headers: {}, body: `{"name":"O'Hara $HOME \`id\`"}` } as never

  const command = toCurl('http://127.0.0.1:1/webhooks', request).replace(/^curl -i /, 'printf "%s" ')

  expect(spawnSync('sh', ['-c', command], { encoding: 'utf8' }).stdout).toContain(`{"name":"O'Hara $HOME \`id\`"}`)
})

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
  fetch(url, { method: "POST", headers, body: values("--data-raw")[0] }).then(async (answer) => console.log(await answer.text()))
`

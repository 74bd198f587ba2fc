/** The memory of `hookline send -`, which does not grow with what it reads. */

import { readFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { spawnHookline } from './command.ts'

const MEGABYTES = 80
const LINE = `${JSON.stringify({ type: 'track', userId: 'u1', event: 'x', properties: { text: 'x'.repeat(39_900) } })}\n`
const LINES = Math.floor((MEGABYTES * 1e6) / LINE.length)

it(`it stays flat over ${MEGABYTES} MB`, { ...needs('Linux'), timeout: 120_000 }, async () => {
  // Node itself takes 100 MB before it collects garbage: with small spaces it collects soon.
  const env = { HOOKLINE_SECRET: 'a secret', NODE_OPTIONS: '--max-semi-space-size=1' }
  const args = ['send', '-', '--concurrency', '8', '--to', await startFastServer()]
  const { child, stdin, ended } = spawnHookline(args, { env })

  const measured: number[] = []
  for (let line = 1; line <= LINES; line += 1) {
    if (!stdin.write(LINE)) await new Promise((resolve) => stdin.once('drain', resolve))
    if (line % Math.ceil(LINES / 10) === 0) measured.push(readResidentMegabytes(child.pid))
  }
  stdin.end()

  expect((await ended).stderr).toContain(`${LINES} sent, all accepted`)
  expect((measured.at(-1) ?? 0) - (measured[2] ?? 0)).toBeLessThan(MEGABYTES / 2)
})

function readResidentMegabytes(pid: number | undefined): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kilobytes) / 1000)
}

/** Answers 200 once a body is complete, and reads no more of HTTP than that takes. */
async function startFastServer(): Promise<string> {
  const server = createServer((socket) => {
    let missing = 0
    socket.on('error', () => {})
    socket.on('data', (chunk) => {
      if (missing === 0) {
        const [head = ''] = chunk.toString('latin1').split('\r\n\r\n', 1)
        missing = head.length + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1])
      }
      missing -= chunk.length
      if (missing === 0) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

/** The parts of the demo, and what no example does. */

import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import express from 'express'
import { expect, onTestFinished, test, vi } from 'vitest'
import { expectations, findFaults, STATIONS, toAnswer } from '../examples/demo/expectations.ts'
import { listen } from '../examples/demo/listen.ts'
import { toFailure, toLine, toPassing } from '../examples/demo/table.ts'
import { watchConsole } from './support/console.ts'
import { throwing } from './support/throwing.ts'

test('the check of an outcome looks at every station and at the outcome', () => {
  const [identify] = expectations
  if (identify === undefined) throw new Error('The demo sends nothing.')
  const passed = new Map(STATIONS.map((station, index) => [station, index * 1.4]))
  const right = { passed, saw: identify.saw }
  const late = { passed: new Map([...passed].slice(0, -1)), saw: identify.saw }

  expect(findFaults(identify, right)).toEqual([])
  expect(toLine(identify, right)).toMatch(/^✓ identify +0 ms +1 ms +3 ms +4 ms {2}user-1 is Ada Lovelace$/)
  expect(findFaults(identify, late)).toEqual([expect.stringContaining('receiver')])
  expect(findFaults(identify, { ...right, saw: 'nothing' })).toEqual([expect.stringContaining(identify.saw)])
  expect(toLine(identify, late)).toMatch(/^✗ identify .* – {2}user-1 is Ada Lovelace \(.*receiver\)$/)
})

test.each([
  ['401 signature_mismatch', { status: 401, body: '{"status":401,"code":"signature_mismatch"}' }],
  ['200', { status: 200, body: '{"ok":true}' }],
  ['refused', { error: 'refused', body: '' }],
] as const)('an answer of the demo reads %s', (text, answer) => {
  expect(toAnswer({ url: 'http://127.0.0.1/', at: new Date(0), durationMs: 1, ok: false, ...answer })).toBe(text)
})

test.each([toPassing, toFailure])('a line of the demo has no character that moves the cursor', (toLine) => {
  expect(toLine('receiver', 'a \u001b[2J b\u009bc\n\u202ed')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
})

test('an example that cannot listen names the port, and ends with 1', async () => {
  const neighbour = createServer().listen(0, '127.0.0.1')
  onTestFinished(() => void neighbour.close())
  await once(neighbour, 'listening')
  const printed = watchConsole()
  const exit = vi.spyOn(process, 'exit').mockImplementation(throwing('It has ended.'))
  onTestFinished(() => {
    vi.unstubAllEnvs()
    exit.mockRestore()
  })

  const { port } = neighbour.address() as AddressInfo
  for (const text of [String(port), 'http']) {
    vi.stubEnv('PORT', text)
    await expect(listen(express())).rejects.toThrow('It has ended.')
  }

  expect(exit.mock.calls).toEqual([[1], [1]])
  expect(printed.map(({ text }) => text)).toEqual([expect.stringContaining(`${port}`), expect.stringContaining('PORT')])
})

test('no example prints a text that a sender wrote as it is: of an object it is escaped', () => {
  const folders = ['docs', 'examples', 'skills', 'tools/command/src/init']
  const files = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true }).map((file) => join(folder, String(file))),
  )
  const isRead = (file: string): boolean =>
    /\.(md|js|ts)$/.test(file) && !TYPED.includes(file) && !GENERATED.some((folder) => file.startsWith(folder))
  const code = ['README.md', ...files].filter(isRead)

  const found = code.filter((file) => /console\.log\(('[^']*', )?message\??\./.test(readFileSync(file, 'utf8')))

  expect(found).toEqual([])
})

/** The reference shows the types of fields, and a build of the guides may be under way. */
const GENERATED = [join('docs', 'reference'), join('docs', '.vitepress')]

/** They show the types of fields. */
const TYPED = ['docs/typed-events.md', 'docs/moving.md'].map((file) => join(...file.split('/')))

/** What the page copies, run: commands by a shell, tests by Node. */

import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { runs } from '../../../test/support/properties.ts'
import { copyAsCurl, copyAsTest } from '../src/page/copy.ts'
import { bodyOf, detailOf, NASTY, row } from './copied.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hookline-copy-'))

beforeAll(() => {
  writeFileSync(join(folder, 'curl'), '#!/bin/sh\nprintf \'%s\\0\' "$@" > args\ncat > stdin\n')
  chmodSync(join(folder, 'curl'), 0o755)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/hookline'), 'junction')
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
})
afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

function runShell(command: string | undefined): { readonly args: string[]; readonly stdin: Buffer } {
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` }
  const { status, stderr } = spawnSync('sh', { input: command ?? '', cwd: folder, env })
  expect([status, String(stderr)]).toEqual([0, ''])
  const args = readFileSync(join(folder, 'args'), 'utf8').split('\0').slice(0, -1)
  return { args, stdin: readFileSync(join(folder, 'stdin')) }
}

function posted({ args, stdin }: ReturnType<typeof runShell>): Buffer {
  const index = args.indexOf('--data-raw')
  if (index !== -1) return Buffer.from(args[index + 1] as string)
  expect(args.slice(-2)).toEqual(['--data-binary', '@-'])
  return stdin
}

describe('a copy as curl', needs('POSIX'), () => {
  it('posts any bytes to the URL, also more than an argument holds', { timeout: 120_000 }, () => {
    const text = fc.string({ unit: 'binary', maxLength: 80 }).map((text) => Buffer.from(text))
    const check = fc.property(fc.oneof(fc.uint8Array({ maxLength: 80 }), text), (bytes) => {
      const result = runShell(copyAsCurl(detailOf(bodyOf(bytes))))
      expect(posted(result).equals(bytes)).toBe(true)
      expect(result.args).toContain('http://localhost:3000/webhooks?a=[1]&b=$(c)')
    })
    const texts = [...NASTY, `["${"it's ".repeat(80_000)}"]`]
    const examples = texts.map((each): [Buffer<ArrayBuffer>] => [Buffer.from(each)])
    fc.assert(check, { numRuns: runs(30), examples }) // Each starts a shell.
  })

  it('sends the headers of the message, without the hidden ones and those of the connection', () => {
    const hopByHop = 'connection content-length expect host keep-alive te transfer-encoding upgrade'.split(' ')
    const given: [string, string | null][] = [
      ['content-type', "text/plain; a='$(id)'"],
      ['x-signature', null],
      ...hopByHop.map((name): [string, string] => [name, 'a']),
      ['x-empty', ''],
      ['x-break', 'a\nb'],
      ['x y: z', 'no name of a header'],
    ]
    const { args } = runShell(copyAsCurl(detailOf(bodyOf(Buffer.from('{}')), given)))

    const headers = args.flatMap((arg, index) => (args[index - 1] === '-H' ? [arg] : []))
    expect(headers).toEqual(["content-type: text/plain; a='$(id)'", 'x-empty;'])
  })
})

const message = { type: 'track', userId: 'u', event: 'e', messageId: 'known' }

function run(receiver: string, source: string | undefined) {
  writeFileSync(join(folder, 'receiver.js'), `export const secret = 'secret'\n${receiver}`)
  writeFileSync(join(folder, 'copy.test.js'), source ?? '')
  return spawnSync(process.execPath, ['copy.test.js'], { cwd: folder, encoding: 'utf8' })
}

it.each([
  ['as an object', JSON.stringify({ ...message, properties: { all: NASTY, lone: '\ud800' } })],
  ['as text', JSON.stringify({ ...message, properties: { all: '\u2028\u2029\u202e' } }, null, 1)],
  ['with a number that JavaScript changes', JSON.stringify(message).replace('"known"', '12345678901234567890')],
  ['with __proto__', JSON.stringify(message).replace('{', '{"properties":{"__proto__":{"a":1}},')],
])('a copy as a test receives the exact body %s, whatever the name of its event is', (_name, text) => {
  const noting = `
      import { writeFileSync } from 'node:fs'
      import { createReceiver } from 'hookline'
      const real = createReceiver({ secret })
      export const receiver = {
        receive(bytes, headers) {
          writeFileSync('received', bytes)
          return real.receive(bytes, headers)
        },
      }`
  const detail = { ...detailOf(bodyOf(Buffer.from(text))), row: { ...row, name: `${NASTY.join(' ')} \ud800` } }

  const { status, stdout, stderr } = run(noting, copyAsTest(detail))

  expect(status, stdout + stderr).toBe(0)
  expect(stdout).toContain('pass 1')
  expect(readFileSync(join(folder, 'received'), 'utf8')).toBe(text)
})

it('a copy as a test of a message in an inbox fails while its handler does, and passes once that is mended', () => {
  const source = copyAsTest({ ...detailOf(bodyOf(Buffer.from(JSON.stringify(message)))), isStored: true })
  const receiverWith = (handler: string) => `
      import { createReceiver } from 'hookline'
      import { memoryQueue } from 'hookline/queues/memory'
      export const receiver = createReceiver({ secret, inbox: memoryQueue(), onError() {} })
      receiver.on('track', () => { ${handler} }).start()`

  const failing = run(receiverWith("throw new Error('a bug')"), source)
  const mended = run(receiverWith(''), source)

  expect([failing.status, failing.stdout]).toEqual([1, expect.stringContaining('a bug')])
  expect(mended).toMatchObject({ status: 0, stdout: expect.stringContaining('pass 1') })
})

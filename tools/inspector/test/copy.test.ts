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
import { copyAsCurl, copyAsTest, quoteForScript, quoteForShell } from '../src/page/copy.ts'
import type { Body, Detail, Row } from '../src/wire.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'hookline-copy-'))

const NASTY = [
  "it's",
  "'; touch hacked; '",
  '$(touch hacked) `touch hacked` $HOME',
  'line\nbreak\r\ttab',
  '\u2028 \u2029 \u202e',
  '😀 é',
  '\0 \u001b[201~ \u007f \u0085',
  '@/etc/passwd',
  '-n \0',
  '\\ \\\\ \\n %s %d',
  '</script> */ //',
  "'\n",
  '',
]

function bodyOf(bytes: Uint8Array): Body {
  try {
    return { size: bytes.length, text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) }
  } catch {
    return { size: bytes.length, base64: Buffer.from(bytes).toString('base64') }
  }
}

const row: Row = {
  id: 1,
  at: 0,
  kind: 'received',
  part: 'shop',
  state: 'done',
  type: 'track',
  name: 'Order Completed',
  bytes: 0,
  attempts: 1,
}

function detailOf(body: Body, headers: readonly (readonly [string, string | null])[] = []): Detail {
  const request = {
    method: 'POST',
    path: '/webhooks?a=[1]&b=$(c)',
    headers: [['host', 'localhost:3000'] as const, ...headers],
  }
  return { row, request, body, steps: [], canExplain: false, isStored: false }
}

beforeAll(() => {
  writeFileSync(join(folder, 'curl'), '#!/bin/sh\nprintf \'%s\\0\' "$@" > args\ncat > stdin\n')
  chmodSync(join(folder, 'curl'), 0o755)
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/hookline'), 'junction')
})
afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

function runShell(command: string | undefined): { readonly args: string[]; readonly stdin: Buffer } {
  const env = { ...process.env, PATH: `${folder}:${process.env.PATH}` }
  const { status, stderr } = spawnSync('sh', { input: command ?? '', cwd: folder, env })
  expect([status, String(stderr)]).toEqual([0, ''])
  const args = readFileSync(join(folder, 'args'), 'utf8').split('\0').slice(0, -1)
  return { args, stdin: readFileSync(join(folder, 'stdin')) }
}

/** The bytes that curl would post. */
function posted({ args, stdin }: ReturnType<typeof runShell>): Buffer {
  const index = args.indexOf('--data-raw')
  if (index !== -1) return Buffer.from(args[index + 1] as string)
  expect(args.slice(-2)).toEqual(['--data-binary', '@-'])
  return stdin
}

describe('a copy as curl', needs('POSIX'), () => {
  it.each(NASTY.map((text) => [JSON.stringify(text), text]))('posts the exact text %s', (_name, text) => {
    const result = runShell(copyAsCurl(detailOf(bodyOf(Buffer.from(text)))))
    expect(String(posted(result))).toBe(text)
    expect(result.args).toContain('http://localhost:3000/webhooks?a=[1]&b=$(c)')
  })

  it('posts any bytes', () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.string({ unit: 'binary' }).map((text) => Buffer.from(text)),
    )
    const check = fc.property(bytes, (bytes) => {
      expect(posted(runShell(copyAsCurl(detailOf(bodyOf(bytes)))))).toEqual(Buffer.from(bytes))
    })
    fc.assert(check, { numRuns: 60 })
  })

  it('posts more than an argument holds', () => {
    const bytes = Buffer.from(`["${"it's ".repeat(80_000)}"]`)
    expect(posted(runShell(copyAsCurl(detailOf(bodyOf(bytes))))).equals(bytes)).toBe(true)
  })

  it('types nothing that a terminal acts on', () => {
    for (const text of NASTY) {
      const command = copyAsCurl(detailOf(bodyOf(Buffer.from(text)), [['x-a', text]])) as string
      expect(command.match(/\p{Cc}/gu)?.filter((found) => found !== '\n') ?? []).toEqual([])
    }
  })

  it('sends the headers of the message, without the hidden ones and those of the connection', () => {
    const { args } = runShell(
      copyAsCurl(
        detailOf(bodyOf(Buffer.from('{}')), [
          ['content-type', "text/plain; a='$(id)'"],
          ['x-signature', null],
          ['host', 'localhost:3000'],
          ['content-length', '2'],
          ['connection', 'keep-alive, x-hop'],
          ['keep-alive', 'timeout=5'],
          ['transfer-encoding', 'chunked'],
          ['expect', '100-continue'],
          ['te', 'trailers'],
          ['upgrade', 'h2c'],
          ['x-empty', ''],
          ['x-break', 'a\nb'],
          ['x y: z', 'no name of a header'],
        ]),
      ),
    )
    const headers = args.flatMap((arg, index) => (args[index - 1] === '-H' ? [arg] : []))
    expect(headers).toEqual(["content-type: text/plain; a='$(id)'", 'x-empty;'])
  })

  it('adds no content type to a message without one', () => {
    expect(runShell(copyAsCurl(detailOf(bodyOf(Buffer.from('{}'))))).args).toContain('content-type:')
  })

  it('does not post to what is no host, and leaves the hidden query of a URL out', () => {
    const body = bodyOf(Buffer.from('{}'))
    const request = { method: 'POST', path: '/a', headers: [['host', 'x.example/?'] as const] }
    expect(runShell(copyAsCurl({ body, request, steps: [] })).args).toContain('http://localhost:3000/a')
    const attempt = { url: 'https://shop.example/a?…', at: 0, durationMs: 1, ok: true, body: '' }
    const sent: Detail = { row, body, steps: [{ at: 0, what: 'attempt', attempt }], canExplain: false, isStored: false }
    expect(runShell(copyAsCurl(sent)).args).toContain('https://shop.example/a')
  })

  it('is not offered for a body that was not kept', () => {
    expect(copyAsCurl(detailOf({ size: 9 }))).toBeUndefined()
    expect(copyAsTest(detailOf({ size: 9 }))).toBeUndefined()
    expect(copyAsTest(detailOf({ size: 1, base64: '/w==' }))).toBeUndefined()
  })
})

describe('a copy as a test', () => {
  const messages = NASTY.map((text) => ({ type: 'track', userId: 'u', event: 'e', properties: { text, [text]: 1 } }))

  /** Runs the test with a real receiver, which notes the bytes. */
  function runTest(source: string | undefined): Buffer {
    writeFileSync(
      join(folder, 'receiver.js'),
      `import { writeFileSync } from 'node:fs'
      import { createReceiver } from 'hookline'
      export const secret = 'secret'
      const real = createReceiver({ secret })
      export const receiver = {
        receive(bytes, headers) {
          writeFileSync('received', bytes)
          return real.receive(bytes, headers)
        },
      }`,
    )
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'copy.test.js'), source ?? '')
    const { status, stdout, stderr } = spawnSync(process.execPath, ['copy.test.js'], { cwd: folder, encoding: 'utf8' })
    expect(status, stdout + stderr).toBe(0)
    expect(stdout).toContain('pass 1')
    return readFileSync(join(folder, 'received'))
  }

  it.each([
    ['as an object', JSON.stringify(messages[0])],
    ['with spaces, as text', JSON.stringify(messages[2], null, 1)],
    ['with everything', JSON.stringify({ ...messages[0], properties: { all: NASTY, lone: '\ud800' } })],
    ['with unescaped line separators', JSON.stringify({ ...messages[0], properties: { all: '\u2028\u2029\u202e' } })],
    [
      'with numbers that JavaScript changes',
      '{"type":"track","userId":"u","event":"e","properties":{"n":12345678901234567890}}',
    ],
    ['with __proto__', '{"type":"track","userId":"u","event":"e","properties":{"__proto__":{"a":1}}}'],
  ])('receives the exact body %s', (_name, text) => {
    expect(String(runTest(copyAsTest(detailOf(bodyOf(Buffer.from(text))))))).toBe(text)
  })

  it('of a message in an inbox fails while its handler does, and passes once that is mended', () => {
    const text = JSON.stringify({ ...messages[0], messageId: 'known' })
    const source = copyAsTest({ ...detailOf(bodyOf(Buffer.from(text))), isStored: true })
    const run = (handler: string) => {
      writeFileSync(
        join(folder, 'receiver.js'),
        `import { createReceiver } from 'hookline'
        import { memoryQueue } from 'hookline/queues/memory'
        export const secret = 'secret'
        export const receiver = createReceiver({ secret, inbox: memoryQueue(), onError() {} })
        receiver.on('track', () => { ${handler} }).start()`,
      )
      writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
      writeFileSync(join(folder, 'copy.test.js'), source ?? '')
      return spawnSync(process.execPath, ['copy.test.js'], { cwd: folder, encoding: 'utf8' })
    }
    const failing = run("throw new Error('a bug')")
    expect([failing.status, failing.stdout]).toEqual([1, expect.stringContaining('a bug')])
    expect(run('')).toMatchObject({ status: 0, stdout: expect.stringContaining('pass 1') })
  })

  it('is a script whatever the name of its event is', () => {
    const text = JSON.stringify(messages[0])
    const detail = detailOf(bodyOf(Buffer.from(text)))
    const name = `${NASTY.join(' ')} \ud800`
    expect(String(runTest(copyAsTest({ ...detail, row: { ...row, name } })))).toBe(text)
  })
})

describe('quotes', () => {
  it('hold any text for JavaScript, seen as it is', () => {
    const check = fc.property(
      fc.string({ unit: fc.oneof(fc.constantFrom(...NASTY, '\ud800', "\\'", '"', '`', '${'), fc.string()) }),
      (text) => {
        const quoted = quoteForScript(text)
        expect(new Function(`return ${quoted}`)()).toBe(text)
        expect(quoted).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u)
      },
    )
    fc.assert(check)
  })

  it('hold any text for a shell', needs('POSIX'), () => {
    const texts = fc.array(
      fc.string({ unit: fc.constantFrom("'", '"', '\\', '$', '`', '!', '\n', ' ', 'a', '-', '😀') }),
      { minLength: 1 },
    )
    const check = fc.property(texts, (texts) => {
      expect(runShell(`curl ${texts.map(quoteForShell).join(' ')}`).args).toEqual(texts)
    })
    fc.assert(check, { numRuns: 40 })
  })
})

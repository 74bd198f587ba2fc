/** What serialisers of other languages sign, written and signed by these languages themselves. */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, test } from 'vitest'
import { explainSignature } from '../../../src/protocol/explain/explain-signature.ts'
import { WRITERS } from '../../../src/protocol/explain/json-writers.ts'
import { sign } from '../../../src/protocol/signature.ts'
import { needs } from '../../support/needs.ts'
import { BODIES } from './bodies.ts'

const SECRET = 'pässword ☃'
const names = Object.keys(BODIES)
const bytesOf = (name: string): Buffer => Buffer.from(BODIES[name] ?? '')
const pathOf = (file: string): string => fileURLToPath(new URL(`writers/${file}`, import.meta.url))

interface Signed {
  readonly writer: string
  readonly signature: string
  readonly bytes: Buffer
}

function readSigned(printed: string): Map<string, Signed[]> {
  const blocks = printed.split(/(?<=^|\n)\n/)
  expect(blocks.pop()).toBe('')
  expect(blocks).toHaveLength(names.length)
  return new Map(
    blocks.map((block, index) => [
      names[index] as string,
      block
        .split('\n')
        .filter(Boolean)
        .map((line) => {
          const [writer = '', signature = '', base64 = ''] = line.split('\t')
          return { writer, signature, bytes: Buffer.from(base64, 'base64') }
        }),
    ]),
  )
}

function run(command: string, ...args: string[]): Map<string, Signed[]> {
  const input = names.map((name) => `${bytesOf(name).toString('base64')}\n`).join('')
  const { stdout, stderr, status } = spawnSync(command, [...args, SECRET], { input, encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(status).toBe(0)
  return readSigned(stdout)
}

/** Each signature is explained, and of the serialisers that ran, those are named that wrote these bytes, and no others. */
function expectNamed(body: Buffer, signed: readonly Signed[], ran: ReadonlySet<string> = writersOf(signed)): void {
  for (const { writer, signature, bytes } of signed) {
    const { verdict, causes } = explainSignature(body, signature, SECRET)
    if (bytes.equals(body)) {
      expect(verdict).toBe('matches')
      continue
    }
    expect({ writer, bytes: String(bytes), causes }).toMatchObject({ causes: [{ code: 'body_reserialised' }] })
    const same = signed.filter((other) => other.bytes.equals(bytes))
    expect(new Set(causes[0]?.writers?.filter((name) => ran.has(name)))).toEqual(writersOf(same))
  }
}

function writersOf(signed: readonly Signed[]): ReadonlySet<string> {
  return new Set(signed.map(({ writer }) => writer))
}

const PROGRAMS = [
  { language: 'Python', command: 'python3', args: [pathOf('python.py')], untested: [] },
  { language: 'PHP', command: 'php', args: [pathOf('php.php')], untested: [] },
  { language: 'Ruby', command: 'ruby', args: [pathOf('ruby.rb')], untested: [/pretty_generate/] },
] as const

for (const { language, command, args, untested } of PROGRAMS) {
  describe(`${language}, run here`, needs(command), () => {
    let signed = new Map<string, Signed[]>()
    beforeAll(() => {
      signed = run(command, ...args)
    })

    it.each(names)('%s', (name) => {
      expectNamed(bytesOf(name), signed.get(name) ?? [], writersOf([...signed.values()].flat()))
    })

    it('wrote with every setting of the table', () => {
      const wrote = writersOf([...signed.values()].flat())
      const known = WRITERS.map(({ name }) => name).filter((name) => name.includes(` of ${language}`))
      expect(known.filter((name) => !wrote.has(name) && !untested.some((pattern) => pattern.test(name)))).toEqual([])
      expect([...wrote].filter((name) => !known.includes(name))).toEqual([])
    })
  })
}

// Of `strings`, Go writes \b and \f in another way since 1.22; of numbers that are no double, it writes nothing.
describe('Go 1.19, from what it printed', () => {
  const signed = readSigned(readFileSync(pathOf('go.txt'), 'utf8'))
  it.each(names.filter((name) => name !== 'strings'))('%s', (name) => {
    expectNamed(bytesOf(name), signed.get(name) ?? [], writersOf([...signed.values()].flat()))
  })
})

test.each<[writer: string, written: string, body?: string]>([
  ['json.Marshal of Go', '{"text":"\\b\\f\\u001f\\u003c\\u2028"}'],
  ['json.Marshal of Go with SetEscapeHTML(false)', '{"text":"\\b\\f\\u001f<\\u2028"}'],
  ['JSON.generate of Ruby with pretty_generate', '{\n  "text": "\\b\\f\\u001f<\u2028"\n}'],
])('%s, from its documentation', (writer, written, body = ' {"text":"\\u0008\\u000C\\u001F<\\u2028"}') => {
  expectNamed(Buffer.from(body), [{ writer, signature: sign(written, SECRET), bytes: Buffer.from(written) }])
})

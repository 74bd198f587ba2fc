/** What serialisers of other languages sign, written and signed by these languages themselves. */

import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, it, test } from 'vitest'
import { explainSignature } from '../../../src/protocol/explain/explain-signature.ts'
import { WRITERS } from '../../../src/protocol/explain/json-writers.ts'
import { sign } from '../../../src/protocol/signature.ts'
import { needs } from '../../support/needs.ts'

const NUMBERS = [
  ...['1e3', '39.0', '9007199254740993', '-0', '-0.0', '1e22', '1e-7', '0.1', '123456789012345680000', '1E+2'],
  ...['0', '-1.5', '100', '1.10', '5e-324', '1.7976931348623157e308', '0.0001', '0.00001', '1.5e-5', '2.5E-10'],
  ...['1e14', '1e15', '1e16', '1e17', '1e21', '1234567890123456.0', '12345678901234567.0', '-1e20'],
  ...['9223372036854775807', '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '1e-400'],
]

/** Serialisers differ in them: numbers, strings, the order of keys, duplicates, empty values, white space. */
const BODIES: Readonly<Record<string, string>> = {
  message: '{"type":"track","userId":"u-1","event":"Order Completed","properties":{"total":12.5,"items":["a","b"]}}',
  numbers: `{"numbers":[${NUMBERS.join(',')}]}`,
  'numbers that are no double': '{"large":1E400,"small":-1E400}',
  strings: String.raw`{"text":"déjà vu ☃ 🎉 <a href='x'>&\"\/</a> \u2028\u2029 \u0000\u0001\u001f\b\f\n\r\t\\\u0041 é ${'\u007f\u0080\u2028\uffff'}"}`,
  'lone surrogates': String.raw`{"text":"\ud800","more":"x\uDC00y"}`,
  keys: '{"b":1,"10":2,"9":3,"a":4,"é":5,"Z":6,"\uffee":7,"🎉":8,"4294967295":9,"4294967294":10,"01":11,"-1":12,"1.5":13}',
  'hostile keys': '{"constructor":{"prototype":1},"__proto__":{"toString":2},"":3}',
  duplicates: String.raw`{"b":1,"a":{"x":1,"x":2},"b":3,"\u0061":[4]}`,
  empty: '{"a":{},"b":[],"c":[{},[]],"d":{"0":1,"1":2},"e":{"1":1,"0":2},"f":null,"g":true,"h":false,"i":""}',
  spaces: '\n{ "a" : [ 1 , 2.50 ] ,\r\n\t"b" : { } }\n',
  list: '[{"type":"track","v":1.0}, {"type":"page"}]',
}

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

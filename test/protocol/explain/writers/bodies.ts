/** What serialisers sign, for the test that runs them and the one that reads what Python 3.11, PHP 8.2, Ruby 3.1 and Go 1.19 printed. */

import { beforeAll, expect, it } from 'vitest'
import { explainSignature } from '../../../../src/protocol/explain/explain-signature.ts'
import { WRITERS } from '../../../../src/protocol/explain/json-writers.ts'

const NUMBERS = [
  ...['1e3', '39.0', '9007199254740993', '-0', '-0.0', '1e22', '1e-7', '0.1', '123456789012345680000', '1E+2'],
  ...['0', '-1.5', '100', '1.10', '5e-324', '1.7976931348623157e308', '0.0001', '0.00001', '1.5e-5', '2.5E-10'],
  ...['1e14', '1e15', '1e16', '1e17', '1e21', '1234567890123456.0', '12345678901234567.0', '-1e20'],
  ...['9223372036854775807', '9223372036854775808', '-9223372036854775808', '-9223372036854775809', '1e-400'],
]

/** Serialisers differ in them: numbers, strings, the order of keys, duplicates, empty values, white space. */
export const BODIES: Readonly<Record<string, string>> = {
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

export const SECRET = 'pässword ☃'
const names = Object.keys(BODIES)

interface Signed {
  readonly writer: string
  readonly signature: string
  readonly bytes: Buffer
}

function readSigned(printed: string): Map<string, Signed[]> {
  const blocks = printed.split(/(?<=^|\n)\n/)
  expect(blocks.pop()).toBe('')
  expect(blocks).toHaveLength(names.length)
  const read = (line: string): Signed => {
    const [writer = '', signature = '', base64 = ''] = line.split('\t')
    return { writer, signature, bytes: Buffer.from(base64, 'base64') }
  }
  return new Map(blocks.map((block, at) => [names[at] as string, block.split('\n').filter(Boolean).map(read)]))
}

/** Each signature is explained, and of the serialisers that ran, those are named that wrote these bytes, and no others. */
export function expectNamed(
  body: Buffer,
  signed: readonly Signed[],
  ran: ReadonlySet<string> = writersOf(signed),
): void {
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

/** @param print Returns, for each of `BODIES`, a block of lines: writer, signature, and bytes in base64. */
export function writersContract(language: string, print: () => string, without?: string): void {
  let signed = new Map<string, Signed[]>()
  let wrote: ReadonlySet<string>
  beforeAll(() => {
    signed = readSigned(print())
    wrote = writersOf([...signed.values()].flat())
  })

  it.each(names.filter((name) => name !== without))('%s', (name) => {
    expectNamed(Buffer.from(BODIES[name] ?? ''), signed.get(name) ?? [], wrote)
  })

  it('wrote with every setting of the table', () => {
    const known = WRITERS.map(({ name }) => name).filter((name) => name.includes(` of ${language}`))
    // Older releases of Ruby have another one, which is not in the table.
    expect(known.filter((name) => !wrote.has(name) && !name.endsWith('pretty_generate'))).toEqual([])
    expect([...wrote].filter((name) => !known.includes(name))).toEqual([])
  })
}

/** What serialisers of other languages sign, from what they printed, and what JavaScript does. */

import { readFileSync } from 'node:fs'
import { describe, test } from 'vitest'
import { sign } from '../../../src/protocol/signature.ts'
import { BODIES, expectNamed, SECRET, writersContract } from './writers/bodies.ts'

// Go writes \b and \f of `strings` in another way since 1.22.
describe.each(['Python', 'PHP', 'Ruby', 'Go'])('%s, from what it printed', (language) => {
  const file = new URL(`writers/${language.toLowerCase()}.txt`, import.meta.url)
  writersContract(language, () => readFileSync(file, 'utf8'), language === 'Go' ? 'strings' : undefined)
})

describe('JavaScript', () => {
  const lineOf = (body: string, indent: number, settings: string) => {
    const text = JSON.stringify(JSON.parse(body), null, indent)
    const base64 = Buffer.from(text).toString('base64')
    return `JSON.stringify of JavaScript${settings}\t${sign(text, SECRET)}\t${base64}\n`
  }
  const blockOf = (body: string) => `${lineOf(body, 0, '')}${lineOf(body, 2, ' with an indent of 2')}\n`
  writersContract('JavaScript', () => Object.values(BODIES).map(blockOf).join(''))
})

test.each<[writer: string, written: string]>([
  ['json.Marshal of Go', '{"text":"\\b\\f\\u001f\\u003c\\u2028"}'],
  ['json.Marshal of Go with SetEscapeHTML(false)', '{"text":"\\b\\f\\u001f<\\u2028"}'],
  ['JSON.generate of Ruby with pretty_generate', '{\n  "text": "\\b\\f\\u001f<\u2028"\n}'],
])('%s, from its documentation', (writer, written) => {
  const body = Buffer.from(' {"text":"\\u0008\\u000C\\u001F<\\u2028"}')
  expectNamed(body, [{ writer, signature: sign(written, SECRET), bytes: Buffer.from(written) }])
})

/** What `explainSignature` finds: each deviation alone, and with a line break. */

import { createHash, createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { explainSignature } from '../../../src/protocol/explain/explain-signature.ts'
import { MISTAKES } from '../../../src/protocol/explain/mistakes.ts'
import { sign } from '../../../src/protocol/signature.ts'

const SECRET = 'a5f0c1d2e3b4'
const TEXT = '{"type":"track","userId":"u-1","event":"Commandé ☃","properties":{"total":39.0}}'
const BODY = Buffer.from(TEXT)
const RIGHT = sign(BODY, SECRET)
const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64')

function codesOf(signature: string | undefined, body: Uint8Array = BODY, secret = SECRET): string[] {
  const { verdict, causes } = explainSignature(body, signature, secret)
  expect(verdict).toBe('explained')
  return causes.map(({ code }) => code)
}

const hashOf = (hash: string, input: string): string => createHash(hash).update(input).digest('hex')
const hmacOf = (hash: string, input = TEXT, key = SECRET): string => createHmac(hash, key).update(input).digest('hex')

describe('the form of a signature', () => {
  it.each([
    ['signature_missing', undefined],
    ['signature_unreadable', `${RIGHT}${RIGHT}${RIGHT}${RIGHT}${RIGHT}`],
    ['signature_unreadable', '"'.repeat(100_000)],
    ['signature_is_secret', SECRET],
    ['signature_is_secret', `Bearer ${Buffer.from(SECRET).toString('base64')}`],
    ['signature_spaced', ` ${RIGHT}`],
    ['signature_quoted', `"${RIGHT}"`],
    ['signature_labelled', `sha1=${RIGHT}`],
    ['signature_labelled', `X-Signature: ${RIGHT}`],
    ['signature_labelled', `${RIGHT}  -`],
    ['signature_labelled', `SHA1(stdin)= ${RIGHT}`],
    ['signature_quoted', `b'${RIGHT}'`],
    ['signature_repeated', `${RIGHT}, ${RIGHT}`],
    ['signature_repeated', `${sign('{}', SECRET)},${RIGHT}`],
    ['signature_timestamped', `t=1492774577,v1=${RIGHT}`],
    ['signature_uppercase', RIGHT.toUpperCase()],
    ['signature_base64', base64(RIGHT)],
    ['signature_base64url', Buffer.from(RIGHT, 'hex').toString('base64url')],
    ['signature_hex_in_base64', Buffer.from(RIGHT).toString('base64')],
    ['signature_cut', RIGHT.slice(0, 39)],
    ['signature_cut', RIGHT.slice(24)],
  ])('%s: %j', (code, signature) => {
    expect(codesOf(signature)).toEqual([code])
  })
})

describe('what several deviations made, or another digest', () => {
  const python = '{"type": "track", "userId": "u-1", "event": "Command\\u00e9 \\u2603", "properties": {"total": 39.0}}'
  const signedAt = (joint: string, hash: string) => hmacOf(hash, `1492774577${joint}${TEXT}`)

  it.each<[codes: string[], signature: string, body?: string, secret?: string]>([
    [
      ['signature_spaced', 'signature_quoted', 'signature_labelled', 'signature_uppercase'],
      ` "sha1=${RIGHT.toUpperCase()}"\n`,
    ],
    [['signature_base64', 'signature_cut'], base64(RIGHT.slice(0, 16))],
    [['signature_timestamped', 'body_timestamped'], `t=1492774577,v1=${signedAt('.', 'sha1')},v0=0123456789abcdef`],
    [['signature_timestamped', 'body_timestamped'], `t=1492774577,v1=${signedAt(':', 'sha1')}`],
    [
      ['signature_timestamped', 'hash_sha256', 'body_timestamped'],
      `t=1492774577, v0=${signedAt('.', 'sha256')}, v1=0123456789abcdef`,
    ],
    [['hash_sha256'], hmacOf('sha256')],
    [['hash_sha512'], hmacOf('sha512')],
    [['hash_md5'], hmacOf('md5')],
    [['hash_sha224'], hmacOf('sha224')],
    [['hash_sha384'], hmacOf('sha384')],
    [['key_unused'], hashOf('sha1', TEXT)],
    [['key_before_body'], hashOf('sha1', SECRET + TEXT)],
    [['key_behind_body'], hashOf('sha1', TEXT + SECRET)],
    [['key_and_body_swapped'], hmacOf('sha1', SECRET, TEXT)],
    [['hash_md5', 'key_before_body'], hashOf('md5', SECRET + TEXT)],
    [['hash_sha256', 'body_line_break_lost'], hmacOf('sha256', `${TEXT}\n`)],
    [['signature_cut', 'hash_sha256'], hmacOf('sha256').slice(0, 50)],
    [['secret_line_break_lost', 'key_before_body'], hashOf('sha1', `${SECRET}\n${TEXT}`)],
    [['body_reserialised', 'body_line_break_lost'], sign(`${python}\n`, SECRET)],
    [['secret_line_break_lost', 'body_reserialised'], sign(python, `${SECRET}\n`)],
    [['secret_quotes_extra', 'body_line_break_extra'], sign(TEXT, 'x y'), `${TEXT}\n`, '"x y"'],
    [['hash_sha256', 'body_reserialised'], hmacOf('sha256', python)],
  ])('%j', (codes, signature, body = TEXT, secret = SECRET) => {
    expect(codesOf(signature, Buffer.from(body), secret)).toEqual(codes)
  })
})

describe('the secret', () => {
  const hex = Buffer.from('naïve').toString('hex')
  it.each<[code: string, passed: string, signing: string | Uint8Array]>([
    ['secret_space_extra', ' secret', 'secret'],
    ...[' secret', 'secret '].map((signing): [string, string, string] => ['secret_space_lost', 'secret', signing]),
    ['secret_line_break_lost', 'secret', 'secret\n'],
    ['secret_line_break_lost', 'secret', 'secret\r\n'],
    ['secret_quotes_extra', '"secret"', 'secret'],
    ['secret_quotes_lost', 'secret', '"secret"'],
    ['secret_quotes_lost', 'secret', "'secret'"],
    ['secret_label_extra', 'export HOOKLINE_SECRET=secret', 'secret'],
    ['secret_hex_decoded', hex, Buffer.from(hex, 'hex')],
    ['secret_base64_decoded', 'bmHDr3ZlIQ==', Buffer.from('naïve!')],
    ['secret_hex_encoded', 'naïve', hex],
    ['secret_hex_encoded', 'naïve', hex.toUpperCase()],
    ['secret_base64_encoded', 'naïve!', 'bmHDr3ZlIQ=='],
    ['secret_base64_encoded', 'naïve!', 'bmHDr3ZlIQ'],
    ['secret_latin1', 'naïve', Buffer.from('naïve', 'latin1')],
  ])('%s: %j', (code, passed, signing) => {
    const signature = createHmac('sha1', signing).update(BODY).digest('hex')
    expect(codesOf(signature, BODY, passed)).toEqual([code])
  })
})

describe('the body', () => {
  const mark = Buffer.from('\ufeff')
  const concat = (...parts: (string | Uint8Array)[]): Buffer =>
    Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : part)))
  const latin1 = (text: string): Buffer => Buffer.from(text, 'latin1')
  const list = '[ {"type": "track", "total": 39.0} ,{"type":"page"}]'

  it.each<[code: string, given: string | Uint8Array, signed: string | Uint8Array]>([
    ['body_line_break_lost', TEXT, `${TEXT}\n`],
    ['body_line_break_lost', TEXT, `${TEXT}\r\n`],
    ['body_line_break_extra', `${TEXT}\n`, TEXT],
    ['body_line_break_extra', `${TEXT}\r\n`, TEXT],
    ['body_space_extra', ` \n${TEXT}\t`, TEXT],
    ['body_bom_extra', concat(mark, TEXT), TEXT],
    ['body_bom_lost', TEXT, concat(mark, TEXT)],
    ['body_line_breaks', '{\n"a":1\n}', '{\r\n"a":1\r\n}'],
    ['body_line_breaks', '{\r\n"a":1\n}', '{\n"a":1\n}'],
    ['body_first_element', list, '{"type":"track","total":39}'],
    ['body_empty', TEXT, ''],
    ['body_object_text', TEXT, '[object Object]'],
    ['body_base64_received', BODY.toString('base64'), TEXT],
    ['body_base64_signed', TEXT, BODY.toString('base64')],
    ['body_json_string_received', JSON.stringify(TEXT), TEXT],
    ['body_json_string_signed', TEXT, JSON.stringify(TEXT)],
    ['body_form_received', `payload=${encodeURIComponent(TEXT)}&x=1`, TEXT],
    ['body_form_received', new URLSearchParams({ payload: '{"a b":1}' }).toString(), '{"a b":1}'],
    ['body_form_received', '%7B%22a%22%3A+1%7D', '{"a": 1}'],
    ['body_percent_encoded', TEXT, encodeURIComponent(TEXT)],
    ['body_latin1', '{"a":"déjà"}', latin1('{"a":"déjà"}')],
    ['body_latin1', '{"a":"é☃"}', latin1('{"a":"é?"}')],
    ['body_ascii', '{"a":"déjà 🎉"}', '{"a":"d?j? ?"}'],
    ['body_utf16', TEXT, Buffer.from(TEXT, 'utf16le')],
    ['body_utf8_twice', '{"a":"déjà"}', '{"a":"dÃ©jÃ\u00a0"}'],
    ['body_utf8_twice', '{"a":"€"}', '{"a":"â‚¬"}'],
    ['body_utf8_twice_received', '{"a":"dÃ©jÃ\u00a0"}', '{"a":"déjà"}'],
    ['body_latin1_received', latin1('{"a":"déjà"}'), '{"a":"déjà"}'],
    ['body_latin1_received', latin1('{"a":"\x80"}'), '{"a":"€"}'],
    ['body_utf8_repaired', latin1('{"a":"é"}'), '{"a":"\ufffd"}'],
  ])('%s: %#', (code, given, signed) => {
    expect(codesOf(sign(concat(signed), SECRET), concat(given))).toEqual([code])
  })

  it.each(['"', '%7B%', '{"a":', '\\u0000', '=', '[', 'x=%', ''])('that is broken is no obstacle: %j', (text) => {
    expect(explainSignature(Buffer.from(text), RIGHT, SECRET).verdict).toBe('unexplained')
    expect(codesOf(sign(`${text}\n`, SECRET), Buffer.from(text))).toEqual(['body_line_break_lost'])
  })

  it('is not taken apart deeper than serialisers go', () => {
    const nested = (depth: number): string => `${'['.repeat(depth)} 1${']'.repeat(depth)}`
    const verdictOf = (depth: number) =>
      explainSignature(Buffer.from(nested(depth)), sign(nested(depth).replace(' ', ''), SECRET), SECRET).verdict
    expect(verdictOf(400)).toBe('explained')
    expect(verdictOf(600)).toBe('unexplained')
    expect(verdictOf(100_000)).toBe('unexplained')
  })
})

describe('what nothing explains', () => {
  const other = sign(BODY, 'another secret')

  it('says so, and what was tried', () => {
    const answer = explainSignature(BODY, other, SECRET)
    expect(answer).toMatchObject({ verdict: 'unexplained', causes: [] })
    expect(answer.tried).toEqual(expect.arrayContaining(['key_unused', 'secret_quotes_lost', 'body_reserialised']))
    expect(answer.tried).not.toContain('body_first_element') // The body is no list.
    expect(explainSignature(BODY, other, other.slice(0, 7))).toMatchObject({ causes: [] }) // A digest may hold it by chance.
  })

  it('says what is wrong with the form all the same', () => {
    const answer = explainSignature(BODY, `sha1=${other}`, SECRET)
    expect(answer).toMatchObject({ verdict: 'unexplained', causes: [{ code: 'signature_labelled' }] })
    expect(answer.message).toContain(answer.causes[0]?.message)
  })

  it('says when a body is too large for all of them', () => {
    const body = Buffer.from(JSON.stringify({ text: 'x'.repeat(2_000_000) }))
    const { tried } = explainSignature(body, other, SECRET, { maxBytes: 40_000_000 })
    expect([tried.includes('key_unused'), tried.includes('body_reserialised')]).toEqual([true, false])
    expect(codesOf(sign(`${body}\n`, SECRET), body)).toEqual(['body_line_break_lost'])
  })
})

it('the expected signature is returned on request only', () => {
  expect(explainSignature(BODY, 'x', SECRET, { expected: true })).toMatchObject({ expected: RIGHT })
  const right = { verdict: 'matches', message: expect.any(String), causes: [], tried: [], expected: RIGHT }
  expect(explainSignature(BODY, hmacOf('sha1'), SECRET, { expected: true })).toEqual(right)
  expect(explainSignature(BODY, 'x', SECRET, { expected: false })).not.toHaveProperty('expected')
})

it.each<[named: string, unknown[]]>([
  ['body', ['text', RIGHT, SECRET]],
  ['signature', [BODY, Buffer.from(RIGHT), SECRET]],
  ['`secret`', [BODY, RIGHT, '']],
  ['options', [BODY, RIGHT, SECRET, null]],
  ['`expcted`', [BODY, RIGHT, SECRET, { expcted: true }]],
  ['`expected`', [BODY, RIGHT, SECRET, { expected: 'yes' }]],
  ['`maxBytes`', [BODY, RIGHT, SECRET, { maxBytes: 0 }]],
])('wrong arguments are a TypeError that names %s', (named, args) => {
  expect(() => Reflect.apply(explainSignature, undefined, args)).toThrow(TypeError)
  expect(() => Reflect.apply(explainSignature, undefined, args)).toThrow(named)
})

const SECRETS = ['a secret ', '"6162"', 'NAME=6162', '616263646566', 'Größe']
const BODIES = [
  ...[
    '{"b":1.0,"a":"é/<","list":[]}\r\n',
    ' {"a":1} ',
    '[{"a":1},{"b":2}]',
    '"text"',
    '{\r\n"a":1}',
    '{\n}',
    '\ufeff{}',
  ],
  ...['a=%7B%7D', '%7B%22a%22%3A1%7D', 'eyJhIjoxfQ==', 'CafÃ©'],
].map((text) => Buffer.from(text))

it('each signature of a receiver with one mistake is explained, and each mistake by its name', () => {
  const bodies = [...BODIES, Buffer.from('Café', 'latin1')]
  const pairs = SECRETS.flatMap((secret) => bodies.map((body) => ({ secret, body })))

  const unnamed = MISTAKES.filter((mistake) => {
    return !pairs.some(({ secret, body }) => {
      const signature = mistake.sign(body, secret)
      if (signature === undefined || signature === sign(body, secret)) return false
      return codesOf(signature, body, secret).includes(mistake.code)
    })
  })

  expect(unnamed).toEqual([])
})

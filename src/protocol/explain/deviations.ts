/** The mistakes that people make when they sign: other ways to combine a secret and a body, other secrets, and other bytes. */

import { isUtf8 } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import { isSpace, skipSpace } from '../json-tokens.ts'
import type { SignatureCauseCode } from './causes.ts'
import type { HashName } from './signature-forms.ts'

export interface Digest {
  compute(hash: HashName, key: Uint8Array, bytes: Uint8Array): string
}

export const HMAC: Digest = {
  compute: (hash, key, bytes) => createHmac(hash, key).update(bytes).digest('hex'),
}

export const WRONG_DIGESTS: readonly (Digest & { readonly code: SignatureCauseCode })[] = [
  { code: 'key_unused', compute: (hash, _key, bytes) => createHash(hash).update(bytes).digest('hex') },
  { code: 'key_before_body', compute: (hash, key, bytes) => createHash(hash).update(key).update(bytes).digest('hex') },
  { code: 'key_behind_body', compute: (hash, key, bytes) => createHash(hash).update(bytes).update(key).digest('hex') },
  { code: 'key_and_body_swapped', compute: (hash, key, bytes) => HMAC.compute(hash, bytes, key) },
]

type SecretChange = readonly [code: SignatureCauseCode, change: (secret: string) => string | Uint8Array | undefined]

export const SECRET_CHANGES: readonly SecretChange[] = [
  ['secret_space_extra', (secret) => secret.trim()],
  ['secret_line_break_lost', (secret) => `${secret}\n`],
  ['secret_line_break_lost', (secret) => `${secret}\r\n`],
  ['secret_space_lost', (secret) => `${secret} `],
  ['secret_space_lost', (secret) => ` ${secret}`],
  ['secret_quotes_extra', (secret) => /^(["'`])(.*)\1$/s.exec(secret)?.[2]],
  ['secret_quotes_lost', (secret) => `"${secret}"`],
  ['secret_quotes_lost', (secret) => `'${secret}'`],
  ['secret_label_extra', (secret) => /^(?:export )?[A-Za-z_][A-Za-z0-9_]*=(.*)$/s.exec(secret)?.[1]],
  ['secret_hex_decoded', (secret) => (/^(?:[0-9a-f]{2})+$/i.test(secret) ? Buffer.from(secret, 'hex') : undefined)],
  ['secret_base64_decoded', decodeBase64],
  ['secret_hex_encoded', (secret) => Buffer.from(secret).toString('hex')],
  ['secret_hex_encoded', (secret) => Buffer.from(secret).toString('hex').toUpperCase()],
  ['secret_base64_encoded', (secret) => Buffer.from(secret).toString('base64')],
  ['secret_base64_encoded', (secret) => Buffer.from(secret).toString('base64url')],
  ['secret_latin1', (secret) => Buffer.from(secret, 'latin1')],
]

/** Lists the keys that a signer may have used instead of the secret, without duplicates. */
export function listSecrets(secret: string) {
  const variants = SECRET_CHANGES.map(([code, change]) => ({ code, key: Buffer.from(change(secret) ?? '') }))
  return variants.filter(
    ({ key }, index) =>
      key.length > 0 &&
      !key.equals(Buffer.from(secret)) &&
      variants.findIndex((earlier) => earlier.key.equals(key)) === index,
  )
}

interface Body {
  readonly bytes: Buffer
  readonly text: string | undefined
}

/** The bytes that may have been signed instead, or text that is to be encoded as UTF-8. Undefined if a change does not apply. */
type Signed = Uint8Array | string | undefined

interface BodyChange {
  readonly code: SignatureCauseCode
  change(body: Body): Signed
}

const LF = 0x0a
const CR = 0x0d
const MARK = Buffer.from('\ufeff')
const NOT_ASCII = /[^\0-\x7f]/gu
const NOT_LATIN1 = /[^\0-\xff]/gu

export const BODY_CHANGES: readonly BodyChange[] = [
  { code: 'body_line_break_lost', change: ({ bytes }) => Buffer.concat([bytes, Buffer.from('\n')]) },
  { code: 'body_line_break_lost', change: ({ bytes }) => Buffer.concat([bytes, Buffer.from('\r\n')]) },
  { code: 'body_line_break_extra', change: ({ bytes }) => (bytes.at(-1) === LF ? bytes.subarray(0, -1) : undefined) },
  {
    code: 'body_line_break_extra',
    change: ({ bytes }) => (bytes.at(-1) === LF && bytes.at(-2) === CR ? bytes.subarray(0, -2) : undefined),
  },
  { code: 'body_space_extra', change: ({ bytes }) => trim(bytes) },
  {
    code: 'body_bom_extra',
    change: ({ bytes }) => (startsWithMark(bytes) ? bytes.subarray(3) : undefined),
  },
  { code: 'body_bom_lost', change: ({ bytes }) => Buffer.concat([MARK, bytes]) },
  { code: 'body_line_breaks', change: ({ text }) => text?.replace(/\r?\n/g, '\r\n') },
  { code: 'body_line_breaks', change: ({ text }) => text?.replaceAll('\r\n', '\n') },
  { code: 'body_first_element', change: ({ text }) => text && readFirstElement(text) },
  { code: 'body_empty', change: () => '' },
  { code: 'body_object_text', change: () => '[object Object]' },
  { code: 'body_base64_received', change: ({ bytes }) => decodeBase64(bytes.toString('latin1').trim()) },
  { code: 'body_base64_signed', change: ({ bytes }) => bytes.toString('base64') },
  { code: 'body_json_string_received', change: ({ text }) => text && readJsonString(text) },
  { code: 'body_json_string_signed', change: ({ text }) => text && JSON.stringify(text) },
  { code: 'body_form_received', change: ({ text }) => text && readFormValue(text) },
  { code: 'body_form_received', change: ({ text }) => text && decodePercent(text) },
  { code: 'body_percent_encoded', change: ({ text }) => text && encodeURIComponent(text) },
  { code: 'body_utf8_twice_received', change: ({ text }) => text && encodeOnce(text) },
  { code: 'body_latin1', change: ({ text }) => text && Buffer.from(text.replace(NOT_LATIN1, '?'), 'latin1') },
  { code: 'body_latin1', change: ({ text }) => text && Buffer.from(text, 'latin1') },
  { code: 'body_ascii', change: ({ text }) => text?.replace(NOT_ASCII, '?') },
  { code: 'body_utf16', change: ({ text }) => text && Buffer.from(text, 'utf16le') },
  { code: 'body_utf8_twice', change: ({ bytes, text }) => text && bytes.toString('latin1') },
  { code: 'body_utf8_twice', change: ({ bytes, text }) => text && readWindows1252(bytes) },
  { code: 'body_latin1_received', change: ({ bytes, text }) => text ?? bytes.toString('latin1') },
  { code: 'body_latin1_received', change: ({ bytes, text }) => text ?? readWindows1252(bytes) },
  { code: 'body_utf8_repaired', change: ({ bytes, text }) => text ?? bytes.toString() },
]

/** Lists the bytes that a signer may have signed instead of the body. */
export function* changeBody(bytes: Buffer) {
  const body = readBody(bytes)
  for (const { code, change } of BODY_CHANGES) {
    const signed = change(body)
    if (signed === undefined) continue
    const changed = toBuffer(signed)
    if (!changed.equals(bytes)) yield { code, bytes: changed }
  }
}

export function readBody(bytes: Buffer): Body {
  return { bytes, text: isUtf8(bytes) ? bytes.toString() : undefined }
}

export function toBuffer(signed: Uint8Array | string): Buffer {
  if (typeof signed === 'string') return Buffer.from(signed)
  return Buffer.from(signed.buffer, signed.byteOffset, signed.length)
}

function trim(bytes: Buffer): Uint8Array {
  const start = skipSpace(bytes, 0)
  let end = bytes.length
  while (end > start && isSpace(bytes[end - 1])) end--
  return bytes.subarray(start, end)
}

function startsWithMark(bytes: Buffer): boolean {
  return bytes.subarray(0, 3).equals(MARK)
}

/**
 * Writes the first element of a list as JSON.stringify does, because senders that sign only one element are usually written in JavaScript.
 */
function readFirstElement(text: string): string | undefined {
  if (!text.startsWith('[')) return undefined
  try {
    return JSON.stringify(JSON.parse(text)[0])
  } catch {
    return undefined
  }
}

function readJsonString(text: string): string | undefined {
  if (!text.startsWith('"')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function decodeBase64(text: string): Buffer | undefined {
  return /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

/** Reads the first value in the body of a form, such as `payload=%7B…`. */
function readFormValue(text: string): string | undefined {
  if (!/^[\w.[\]-]+=/.test(text)) return undefined
  const [first] = new URLSearchParams(text)
  return first?.[1]
}

function decodePercent(text: string): string | undefined {
  if (!/^%(?:7B|5B|22)/i.test(text)) return undefined
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** Undoes the second encoding of text that was encoded as UTF-8 twice. Returns undefined for any other text. */
function encodeOnce(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) && bytes.toString('latin1') === text ? bytes : undefined
}

function readWindows1252(bytes: Buffer): string {
  return new TextDecoder('windows-1252').decode(bytes)
}

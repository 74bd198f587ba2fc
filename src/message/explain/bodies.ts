/** The bytes that a signer may have signed instead of the body that was passed. */

import { isUtf8 } from 'node:buffer'
import { firstElement, trim } from '../elements.ts'
import type { SignatureCauseCode } from './causes.ts'

interface Body {
  readonly bytes: Buffer
  readonly text: string | undefined
}

/** What may have been signed instead: bytes, or text to be encoded as UTF-8. Undefined where it does not apply. */
type Signed = Uint8Array | string | undefined

/** A deviation of the bytes; `inner` when a serialiser may have worked on its result. */
interface BodyChange {
  readonly code: SignatureCauseCode
  readonly inner?: true
  change(body: Body): Signed
}

const LF = 0x0a
const CR = 0x0d
const MARK = Buffer.from('\ufeff')
const NOT_ASCII = /[^\0-\x7f]/gu
const NOT_LATIN1 = /[^\0-\xff]/gu

const CHANGES: readonly BodyChange[] = [
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
    inner: true,
    change: ({ bytes }) => (startsWithMark(bytes) ? bytes.subarray(3) : undefined),
  },
  { code: 'body_bom_lost', change: ({ bytes }) => Buffer.concat([MARK, bytes]) },
  { code: 'body_line_breaks', change: ({ text }) => text?.replace(/\r?\n/g, '\r\n') },
  { code: 'body_line_breaks', change: ({ text }) => text?.replaceAll('\r\n', '\n') },
  { code: 'body_first_element', inner: true, change: ({ bytes }) => readFirstElement(bytes) },
  { code: 'body_empty', change: () => '' },
  { code: 'body_object_text', change: () => '[object Object]' },
  { code: 'body_base64_received', inner: true, change: ({ bytes }) => decodeBase64(bytes) },
  { code: 'body_base64_signed', change: ({ bytes }) => bytes.toString('base64') },
  { code: 'body_json_string_received', inner: true, change: ({ text }) => text && readJsonString(text) },
  { code: 'body_json_string_signed', change: ({ text }) => text && JSON.stringify(text) },
  { code: 'body_form_received', inner: true, change: ({ text }) => text && readFormValue(text) },
  { code: 'body_form_received', inner: true, change: ({ text }) => text && decodePercent(text) },
  { code: 'body_percent_encoded', change: ({ text }) => text && encodeURIComponent(text) },
  { code: 'body_utf8_twice_received', inner: true, change: ({ text }) => text && encodedOnce(text) },
  { code: 'body_latin1', change: ({ text }) => text && Buffer.from(text.replace(NOT_LATIN1, '?'), 'latin1') },
  { code: 'body_latin1', change: ({ text }) => text && Buffer.from(text, 'latin1') },
  { code: 'body_ascii', change: ({ text }) => text?.replace(NOT_ASCII, '?') },
  { code: 'body_utf16', change: ({ text }) => text && Buffer.from(text, 'utf16le') },
  { code: 'body_utf8_twice', change: ({ bytes, text }) => text && bytes.toString('latin1') },
  { code: 'body_utf8_twice', change: ({ bytes, text }) => text && readWindows1252(bytes) },
  { code: 'body_latin1_received', inner: true, change: ({ bytes, text }) => text ?? bytes.toString('latin1') },
  { code: 'body_latin1_received', inner: true, change: ({ bytes, text }) => text ?? readWindows1252(bytes) },
  { code: 'body_utf8_repaired', change: ({ bytes, text }) => text ?? bytes.toString() },
]

export interface ChangedBody {
  readonly code: SignatureCauseCode
  /** Whether a serialiser may have worked on it. */
  readonly isInner: boolean
  readonly bytes: Buffer
}

export function* changeBody(bytes: Buffer, withInner: boolean): Generator<ChangedBody> {
  const body = { bytes, text: isUtf8(bytes) ? bytes.toString() : undefined }
  for (const { code, inner: isInner = false, change } of CHANGES) {
    if (isInner && !withInner) continue
    const signed = change(body)
    if (signed === undefined) continue
    const changed = toBuffer(signed)
    if (!changed.equals(bytes)) yield { code, isInner, bytes: changed }
  }
}

function toBuffer(signed: Uint8Array | string): Buffer {
  if (typeof signed === 'string') return Buffer.from(signed)
  return Buffer.from(signed.buffer, signed.byteOffset, signed.length)
}

function startsWithMark(bytes: Buffer): boolean {
  return bytes.subarray(0, 3).equals(MARK)
}

function readFirstElement(bytes: Buffer): Uint8Array | undefined {
  const first = firstElement(bytes)
  return first.length === 0 ? undefined : first
}

function readJsonString(text: string): string | undefined {
  if (!text.startsWith('"')) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function decodeBase64(bytes: Buffer): Buffer | undefined {
  const text = bytes.toString('latin1').trim()
  return /^[A-Za-z0-9+/_-]+={0,2}$/.test(text) ? Buffer.from(text, 'base64') : undefined
}

/** The first value of a form: of `payload=%7B…`. */
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

/** What was encoded as UTF-8 twice, encoded once. Undefined for text that cannot be that. */
function encodedOnce(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) && bytes.toString('latin1') === text ? bytes : undefined
}

function readWindows1252(bytes: Buffer): string {
  return new TextDecoder('windows-1252').decode(bytes)
}

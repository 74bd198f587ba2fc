/** Reads a signature in the forms that people give it, and says what is wrong with the form. */

import { causeOf, type SignatureCause, type SignatureCauseCode } from './causes.ts'

/** A hash function, by its name in node:crypto. */
export type HashName = 'md5' | 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512'

/** One way to read a signature: which digest it may be. */
export interface Reading {
  readonly hash: HashName
  /** What is wrong with the form, and with the hash. */
  readonly causes: readonly SignatureCause[]
  /** Checks whether this digest, in lowercase hexadecimal, is the one that was given. */
  fits(digest: string): boolean
}

/** How many hexadecimal digits each hash has. */
const DIGITS: Readonly<Record<HashName, number>> = {
  md5: 32,
  sha1: 40,
  sha224: 56,
  sha256: 64,
  sha384: 96,
  sha512: 128,
}
const HASHES = Object.keys(DIGITS) as HashName[]
/** A part of a digest is read as one of these, the shortest that is long enough. */
const OFTEN_CUT: readonly HashName[] = ['sha1', 'sha256', 'sha512']

/** Fewer digits than this fit by chance. */
const SHORTEST_PART = 16

/** More characters than this are no digest, whatever is put around it. */
const LONGEST = 1_000

/** What is put around a signature, most often by tools: `sha1=…`, `SHA1(stdin)= …`, `… *stdin`. */
const WRAPPERS: readonly (readonly [SignatureCauseCode, RegExp])[] = [
  ['signature_spaced', /^\s+(.*)$|^(.*\S)\s+$/s],
  ['signature_quoted', /^b?(["'`])(.*)\1$/s],
  ['signature_labelled', /^(?:x-)?(?:hub-)?(?:signature|hmac|digest|sha|md|v)[-_]?\d{0,3}\s*[=:]\s*(.+)$/is],
  ['signature_labelled', /^(?:[\w-]+ ?)?\(stdin\)= (.+)$/is],
  ['signature_labelled', /^(.+?) [ *]?(?:-|stdin)$/s],
]

/**
 * Reads a signature that was given. No readings: it is none, and the causes say why.
 *
 * @param causes What is wrong in any reading.
 */
export function readSignature(signature: string): { readings: readonly Reading[]; causes: readonly SignatureCause[] } {
  const codes = new Set<SignatureCauseCode>()
  const hex = signature.length > LONGEST ? undefined : readHex(unwrap(signature, codes), codes)
  const causes = [...codes].map(causeOf)
  if (hex === undefined) return { readings: [], causes: [causeOf('signature_unreadable')] }
  return { readings: listReadings(hex, causes), causes }
}

function unwrap(text: string, codes: Set<SignatureCauseCode>): string {
  for (const [code, pattern] of WRAPPERS) {
    const inner = pattern.exec(text)?.findLast((group) => group !== undefined)
    if (inner === undefined || inner === text) continue
    codes.add(code)
    return unwrap(inner, codes)
  }
  return text
}

/** The digits that a signature stands for, in lower case. Undefined for what is too short or no digest. */
function readHex(text: string, codes: Set<SignatureCauseCode>): string | undefined {
  if (/^[0-9a-f]{16,128}$/i.test(text)) {
    if (text !== text.toLowerCase()) codes.add('signature_uppercase')
    return text.toLowerCase()
  }
  if (!/^[A-Za-z0-9+/_-]{11,172}={0,2}$/.test(text)) return undefined
  const decoded = Buffer.from(text, 'base64')
  const inner = decoded.toString('latin1')
  if (/^[0-9a-f]{32,128}$/i.test(inner)) {
    codes.add('signature_hex_in_base64')
    return inner.toLowerCase()
  }
  const isUrl = /[-_]/.test(text) || (text.length % 4 !== 0 && !text.includes('='))
  codes.add(isUrl ? 'signature_base64url' : 'signature_base64')
  return decoded.length * 2 >= SHORTEST_PART && decoded.length <= 64 ? decoded.toString('hex') : undefined
}

/** A digest of exactly this length, and a longer one that was cut. */
function listReadings(hex: string, causes: readonly SignatureCause[]): Reading[] {
  const readings: Reading[] = []
  const whole = HASHES.find((hash) => DIGITS[hash] === hex.length)
  if (whole) readings.push({ hash: whole, causes: [...causes, ...ofHash(whole)], fits: (digest) => digest === hex })
  const cut = whole === undefined || hex.length < 40 ? OFTEN_CUT.find((hash) => DIGITS[hash] > hex.length) : undefined
  if (cut) {
    const fits = (digest: string): boolean => digest.startsWith(hex) || digest.endsWith(hex)
    readings.push({ hash: cut, causes: [...causes, causeOf('signature_cut'), ...ofHash(cut)], fits })
  }
  return readings
}

function ofHash(hash: HashName): SignatureCause[] {
  return hash === 'sha1' ? [] : [causeOf(`hash_${hash}`)]
}

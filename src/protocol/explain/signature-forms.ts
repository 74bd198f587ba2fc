/** Reads a signature in the forms in which people write it, and finds what is wrong with the form. */

import { causeOf, type SignatureCause, type SignatureCauseCode } from './causes.ts'

export type HashName = 'md5' | 'sha1' | 'sha224' | 'sha256' | 'sha384' | 'sha512'

export interface Reading {
  readonly hash: HashName
  /** The deviations in the form, in the hash, and in what was signed before the body. */
  readonly causes: readonly SignatureCause[]
  /** The text that was signed before the body: a timestamp with its separator, or nothing. */
  readonly prefix: string
  fits(digest: string): boolean
}

const DIGITS: Readonly<Record<HashName, number>> = {
  md5: 32,
  sha1: 40,
  sha224: 56,
  sha256: 64,
  sha384: 96,
  sha512: 128,
}
const HASHES = Object.keys(DIGITS) as HashName[]
const OFTEN_CUT: readonly HashName[] = ['sha1', 'sha256', 'sha512']

/** The minimum number of digits: fewer may match by chance. */
const MIN_DIGITS = 16

/** The maximum number of characters: longer text is not a digest, whatever surrounds it. */
const MAX_LENGTH = 1_000

/**
 * The labels that tools put around a signature, such as `sha1=…`, `SHA1(stdin)= …`, `… *stdin`. Each pattern captures the signature itself.
 */
const WRAPPERS: readonly (readonly [SignatureCauseCode, RegExp])[] = [
  ['signature_spaced', /^\s+(.*)$|^(.*\S)\s+$/s],
  ['signature_quoted', /^b?(["'`])(.*)\1$/s],
  ['signature_labelled', /^(?:x-)?(?:hub-)?(?:signature|hmac|digest|sha|md|[hsv])[-_]?\d{0,3}\s*[=:]\s*(.+)$/is],
  ['signature_labelled', /^(?:[\w-]+ ?)?\(stdin\)= (.+)$/is],
  ['signature_labelled', /^(.+?) [ *]?(?:-|stdin)$/s],
]

/** The timestamp in a list such as `t=1492774577,v1=…`. */
const TIMESTAMP = /^(?:t|ts|timestamp) ?= ?(\d{1,20})$/i

/** The separators that senders put between the timestamp and the body that they sign. */
const JOINTS = ['.', ':']

/**
 * Lists the possible readings of a signature, and the causes that all of them share. For text that is not a signature, returns no
 * reading, and the causes say why.
 */
export function readSignature(signature: string): { readings: readonly Reading[]; causes: readonly SignatureCause[] } {
  const codes = new Set<SignatureCauseCode>()
  const text = signature.length > MAX_LENGTH ? '' : unwrap(signature, codes)
  const parts = text.split(/\s*[,;]\s*/)
  const [timestamp] = parts.flatMap((part) => TIMESTAMP.exec(part)?.[1] ?? [])
  if (timestamp !== undefined) codes.add('signature_timestamped')
  else if (parts.length > 1) codes.add('signature_repeated')
  const readings = [...new Set(parts)].flatMap((part) => readPart(part, codes, timestamp))
  const [first, ...others] = readings
  if (first === undefined) return { readings, causes: [causeOf('signature_unreadable')] }
  const isInAll = ({ code }: SignatureCause): boolean =>
    others.every(({ causes }) => causes.some((cause) => cause.code === code))
  return { readings, causes: first.causes.filter(isInAll) }
}

function readPart(part: string, codesOfAll: ReadonlySet<SignatureCauseCode>, timestamp: string | undefined): Reading[] {
  const codes = new Set(codesOfAll)
  const hex = readHex(unwrap(part, codes), codes)
  if (hex === undefined) return []
  if (timestamp === undefined) return listReadings(hex, codes)
  codes.delete('signature_labelled')
  const prefixed = JOINTS.flatMap((joint) => listReadings(hex, codes, timestamp + joint))
  return [...prefixed, ...listReadings(hex, codes)]
}

/** Removes all wrappers from the text, and adds the code of each to `codes`. */
function unwrap(text: string, codes: Set<SignatureCauseCode>): string {
  for (const [code, pattern] of WRAPPERS) {
    const inner = pattern.exec(text)?.findLast((group) => group !== undefined)
    if (inner === undefined || inner === text) continue
    codes.add(code)
    return unwrap(inner, codes)
  }
  return text
}

/** Reads a digest as hexadecimal digits, and adds the codes of its encoding to `codes`. Returns undefined for text that is not a digest. */
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
  return decoded.length * 2 >= MIN_DIGITS && decoded.length <= 64 ? decoded.toString('hex') : undefined
}

/** Lists the digests that these digits may be: a digest of this length, or a longer digest that was cut off. */
function listReadings(hex: string, codes: ReadonlySet<SignatureCauseCode>, prefix = ''): Reading[] {
  const readings: Reading[] = []
  const addReading = (hash: HashName, cutCodes: readonly SignatureCauseCode[], fits: Reading['fits']): void => {
    const hashCodes = hash === 'sha1' ? [] : ([`hash_${hash}`] as const)
    const prefixCodes = prefix === '' ? [] : (['body_timestamped'] as const)
    const causes = [...codes, ...cutCodes, ...hashCodes, ...prefixCodes].map(causeOf)
    readings.push({ hash, prefix, causes, fits })
  }
  const whole = HASHES.find((hash) => DIGITS[hash] === hex.length)
  if (whole) addReading(whole, [], (digest) => digest === hex)
  const cut = whole === undefined || hex.length < 40 ? OFTEN_CUT.find((hash) => DIGITS[hash] > hex.length) : undefined
  if (cut) addReading(cut, ['signature_cut'], (digest) => digest.startsWith(hex) || digest.endsWith(hex))
  return readings
}

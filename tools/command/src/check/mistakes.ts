/** Finds what an endpoint verifies instead of the HMAC-SHA1 of the bytes, based on which messages it accepts. */

import { createHmac } from 'node:crypto'
import { MISTAKES } from '../../../../src/internals.ts'

/** A body whose bytes were signed, and whether it was refused. */
export interface Sample {
  readonly text: string
  readonly isRefused: boolean
}

/** Changes to a body other than those that serialisers make. */
const CHANGES: readonly (readonly [sentence: string, change: (text: string) => string])[] = [
  ['The endpoint trims the body before verifying it.', (text) => text.trim()],
  ['The endpoint trims the end of the body before verifying it.', (text) => text.trimEnd()],
  ['The endpoint decodes the body as Latin-1 before verifying it.', (text) => Buffer.from(text).toString('latin1')],
  ['The endpoint normalises Unicode before verifying the body.', (text) => text.normalize()],
  ['The endpoint changes line breaks before verifying the body.', (text) => text.replaceAll('\r\n', '\n')],
  ['The endpoint removes non-ASCII characters before verifying the body.', (text) => text.replace(/[^\0-\x7f]/g, '')],
]

/** The minimum number of bodies to compare. With fewer, too many serialisers match. */
const MIN_SAMPLES = 10

/** Returns a sentence about the change that affects all refused bodies and no accepted one; undefined when no known change does. */
export function findCulprit(samples: readonly Sample[]): string | undefined {
  if (samples.length < MIN_SAMPLES || !samples.some(({ isRefused }) => isRefused)) return undefined
  const change = CHANGES.find(([, apply]) =>
    samples.every(({ text, isRefused }) => (apply(text) !== text) === isRefused),
  )
  if (change !== undefined) return change[0]

  const writers = MISTAKES.filter(
    ({ writer, sign }) =>
      writer !== undefined &&
      samples.every(({ text, isRefused }) => {
        const body = Buffer.from(text)
        return (sign(body, ANY) !== hmac('sha1', ANY, body)) === isRefused
      }),
  )
  return writers.length === 0 ? undefined : reserialises(writers)
}

/** A placeholder for the secret where its value makes no difference. */
const ANY = 'any'

/** Returns a sentence that names at most three of these serialisers, each once, with the first of its settings. */
function reserialises(mistakes: readonly Known[]): string {
  const names = mistakes.map(({ writer = '' }) => writer)
  const firstOfEach = new Map(names.toReversed().map((name) => [name.replace(/ with .*/, ''), name]))
  const shown = [...firstOfEach.values()].reverse().slice(0, 3)
  return `The endpoint re-serialises the body before verifying it, as ${shown.join(', or ')} does.`
}

/** A signature that an endpoint may expect by mistake. */
interface Mistake {
  /** Says what an endpoint does wrong if it accepts the signature, and what to do. */
  readonly meaning: string
  sign(text: string, secret: string): string
}

/** A known mistake. Its `sign` returns undefined when the mistake does not apply to a body. */
type Known = Omit<(typeof MISTAKES)[number], 'code'> & { readonly code: string }

export function listMistakes(text: string, secret: string): readonly Mistake[] {
  const body = Buffer.from(text)
  const right = hmac('sha1', secret, body)
  const known: readonly Known[] = [...OF_ENDPOINTS, ...MISTAKES].filter(
    ({ code, writer }) => writer !== undefined || code in MEANINGS,
  )
  return [...Map.groupBy(known, ({ sign }) => sign(body, secret))].flatMap(([signature, mistakes]): Mistake[] => {
    const [first] = mistakes as [Known]
    if (signature === undefined || signature === right) return []
    const meaning =
      MEANINGS[first.code] ??
      `${reserialises(mistakes)} Verify the bytes as they arrived, before they are decoded or parsed.`
    return [{ meaning, sign: (other, key) => first.sign(Buffer.from(other), key) ?? '' }]
  })
}

/** Mistakes that `MISTAKES` does not contain, because only endpoints make them. */
const OF_ENDPOINTS: readonly Known[] = [
  { code: 'hash_sha256', sign: (body, secret) => hmac('sha256', secret, body) },
  { code: 'hash_sha512', sign: (body, secret) => hmac('sha512', secret, body) },
  { code: 'hash_md5', sign: (body, secret) => hmac('md5', secret, body) },
  { code: 'signature_base64', sign: (body, secret) => toBase64(hmac('sha1', secret, body)) },
  { code: 'signature_labelled', sign: (body, secret) => `sha1=${hmac('sha1', secret, body)}` },
  { code: 'signature_uppercase', sign: (body, secret) => hmac('sha1', secret, body).toUpperCase() },
  { code: 'sha256_base64', sign: (body, secret) => toBase64(hmac('sha256', secret, body)) },
  { code: 'sha256_labelled', sign: (body, secret) => `sha256=${hmac('sha256', secret, body)}` },
  { code: 'secret_empty', sign: (body) => hmac('sha1', '', body) },
  { code: 'body_python', sign: (body, secret) => hmac('sha1', secret, `b'${body}'`) },
]

export function hmac(hash: string, key: string | Uint8Array, body: string | Uint8Array): string {
  return createHmac(hash, key).update(body).digest('hex')
}

export function toBase64(hex: string): string {
  return Buffer.from(hex, 'hex').toString('base64')
}

const USE_HEX = 'Compare only lowercase hex digits.'
const USE_HMAC = 'Use HMAC-SHA1.'
const USE_BYTES = 'Verify the bytes as they arrived.'
const USE_TEXT = 'Use the text of the secret.'

const MEANINGS: Readonly<Record<string, string>> = {
  hash_sha256: `The endpoint expects HMAC-SHA256. ${USE_HMAC}`,
  hash_sha512: `The endpoint expects HMAC-SHA512. ${USE_HMAC}`,
  hash_md5: `The endpoint expects HMAC-MD5. ${USE_HMAC}`,
  signature_base64: `The endpoint expects base64. ${USE_HEX}`,
  signature_labelled: `The endpoint expects sha1= before the digits. ${USE_HEX}`,
  signature_uppercase: `The endpoint expects uppercase digits. ${USE_HEX}`,
  sha256_base64: `The endpoint expects HMAC-SHA256 as base64. ${USE_HMAC} ${USE_HEX}`,
  sha256_labelled: `The endpoint expects HMAC-SHA256, after sha256=. ${USE_HMAC} ${USE_HEX}`,
  key_unused: `The endpoint expects SHA-1 without the secret. ${USE_HMAC}`,
  key_before_body: `The endpoint expects the SHA-1 of the secret followed by the body. ${USE_HMAC}`,
  key_behind_body: `The endpoint expects the SHA-1 of the body followed by the secret. ${USE_HMAC}`,
  key_and_body_swapped: 'The endpoint uses the body as the key and the secret as the text. Swap them.',
  secret_empty: "The endpoint's secret is empty. Configure it.",
  secret_line_break_lost: "The endpoint's secret ends with a line break. Remove it.",
  secret_space_lost: "The endpoint's secret has a space before or after it. Remove the space.",
  secret_space_extra: "The endpoint's secret has no white space around it, but yours does.",
  secret_quotes_lost: "The endpoint's secret is in quotation marks. Remove them.",
  secret_quotes_extra: "The endpoint's secret has no quotation marks around it, but yours does.",
  secret_hex_decoded: `The endpoint decodes the secret from hex. ${USE_TEXT}`,
  secret_base64_decoded: `The endpoint decodes the secret from base64. ${USE_TEXT}`,
  body_empty: 'The endpoint verifies an empty body: something else read the body first.',
  body_line_break_lost: `The endpoint verifies a body with a line break at its end. ${USE_BYTES}`,
  body_python: `The endpoint verifies Python's str(body), which is b'…'. ${USE_BYTES}`,
  body_object_text: `The endpoint verifies an object that was converted to text. ${USE_BYTES}`,
  body_json_string_signed: `The endpoint verifies the body as a JSON string. ${USE_BYTES}`,
  body_base64_signed: `The endpoint verifies the body as base64. ${USE_BYTES}`,
  body_percent_encoded: `The endpoint verifies the body as percent-encoded text. ${USE_BYTES}`,
}

/** Finds what an endpoint verifies instead of the HMAC-SHA1 of the bytes, from the messages that it accepts and refuses. */

import { createHmac } from 'node:crypto'
import { MISTAKES } from '../../../../src/internals.ts'

/** A body whose bytes were signed, and whether it was refused. */
export interface Sample {
  readonly text: string
  readonly isRefused: boolean
}

/** Changes to a body that are not made by a serialiser. */
const CHANGES: readonly (readonly [sentence: string, change: (text: string) => string])[] = [
  ['It trims the body before it verifies it.', (text) => text.trim()],
  ['It trims the end of the body before it verifies it.', (text) => text.trimEnd()],
  ['It decodes the body as Latin-1 before it verifies it.', (text) => Buffer.from(text).toString('latin1')],
  ['It normalises Unicode before it verifies the body.', (text) => text.normalize()],
  ['It changes line breaks before it verifies the body.', (text) => text.replaceAll('\r\n', '\n')],
  ['It removes what is not ASCII before it verifies the body.', (text) => text.replace(/[^\0-\x7f]/g, '')],
]

/** Below this number of bodies, too many serialisers match. */
const MIN_SAMPLES = 10

/** Returns what changes all refused bodies and none of the accepted ones; undefined when no known change matches. */
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

/** Stands for a secret where its value makes no difference. */
const ANY = 'any'

/** Says that the endpoint verifies what one of these serialisers writes. Those with few settings come first. */
function reserialises(mistakes: readonly Known[]): string {
  const names = mistakes.map(({ writer = '' }) => writer)
  const firstOfEach = new Map(names.toReversed().map((name) => [name.replace(/ with .*/, ''), name]))
  const shown = [...firstOfEach.values()].reverse().slice(0, 3)
  return `It re-serialises the body before it verifies it, as ${shown.join(', or ')} does.`
}

/** A signature that an endpoint may expect by mistake. */
interface Mistake {
  /** Says what it means when the endpoint accepts the signature, and what to do. */
  readonly meaning: string
  sign(text: string, secret: string): string
}

/** Signs a body with one mistake. Returns undefined when the mistake does not apply. */
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

/** Mistakes that only endpoints make. */
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

const USE_HEX = 'Compare lowercase hex digits alone.'
const USE_HMAC = 'Use HMAC-SHA1.'
const USE_BYTES = 'Verify the bytes as they arrived.'
const USE_TEXT = 'Use its text.'

const MEANINGS: Readonly<Record<string, string>> = {
  hash_sha256: `It expects HMAC-SHA256. ${USE_HMAC}`,
  hash_sha512: `It expects HMAC-SHA512. ${USE_HMAC}`,
  hash_md5: `It expects HMAC-MD5. ${USE_HMAC}`,
  signature_base64: `It expects base64. ${USE_HEX}`,
  signature_labelled: `It expects sha1= before the digits. ${USE_HEX}`,
  signature_uppercase: `It expects upper case. ${USE_HEX}`,
  sha256_base64: `It expects HMAC-SHA256 as base64. ${USE_HMAC} ${USE_HEX}`,
  sha256_labelled: `It expects sha256= and HMAC-SHA256. ${USE_HMAC} ${USE_HEX}`,
  key_unused: `It expects SHA-1 without the secret. ${USE_HMAC}`,
  key_before_body: `It expects SHA-1 of secret and body. ${USE_HMAC}`,
  key_behind_body: `It expects SHA-1 of body and secret. ${USE_HMAC}`,
  key_and_body_swapped: 'It uses the body as the key and the secret as the text. Swap them.',
  secret_empty: 'Its secret is empty. Configure it.',
  secret_line_break_lost: 'Its secret has a line break at its end. Remove it.',
  secret_space_lost: 'Its secret has a space before or after it. Remove it.',
  secret_space_extra: 'Its secret has no white space around it, and yours has.',
  secret_quotes_lost: 'Its secret is in quotation marks. Remove them.',
  secret_quotes_extra: 'Its secret has no quotation marks, and yours has.',
  secret_hex_decoded: `It decodes the secret from hex. ${USE_TEXT}`,
  secret_base64_decoded: `It decodes the secret from base64. ${USE_TEXT}`,
  body_empty: 'It verifies an empty body: something before it has read the body.',
  body_line_break_lost: `It verifies a body with a line break at its end. ${USE_BYTES}`,
  body_python: `It verifies str(body) of Python: b'…'. ${USE_BYTES}`,
  body_object_text: `It verifies an object as text. ${USE_BYTES}`,
  body_json_string_signed: `It verifies the body as a JSON string. ${USE_BYTES}`,
  body_base64_signed: `It verifies the body as base64. ${USE_BYTES}`,
  body_percent_encoded: `It verifies the body as percent-encoded text. ${USE_BYTES}`,
}

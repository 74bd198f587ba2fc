/** Finds what an endpoint verifies in place of the HMAC-SHA1 of the bytes, from what it takes and refuses. */

import { createHash, createHmac } from 'node:crypto'

import { listRewrites } from '../../message/explain/json-rewrites.ts'
import { readJsonText } from '../../message/explain/json-text.ts'
import { WRITERS } from '../../message/explain/json-writers.ts'

/** A body that was signed over its bytes, and whether it was refused. */
export interface Sample {
  readonly text: string
  readonly isRefused: boolean
}

/** What else than a serialiser changes a body. */
const CHANGES: readonly (readonly [sentence: string, change: (text: string) => string])[] = [
  ['It trims the body before it verifies it.', (text) => text.trim()],
  ['It trims the end of the body before it verifies it.', (text) => text.trimEnd()],
  ['It decodes the body as Latin-1 before it verifies it.', (text) => Buffer.from(text).toString('latin1')],
  ['It normalises Unicode before it verifies the body.', (text) => text.normalize()],
  ['It changes line breaks before it verifies the body.', (text) => text.replaceAll('\r\n', '\n')],
  ['It removes what is not ASCII before it verifies the body.', (text) => text.replace(/[^\0-\x7f]/g, '')],
]

/** Fewer bodies fit too many serialisers. */
const LEAST_SAMPLES = 10

/** Says what changes bodies: what changes all that are refused, and none that are taken. Undefined when nothing known does. */
export function findCulprit(samples: readonly Sample[]): string | undefined {
  if (samples.length < LEAST_SAMPLES || !samples.some(({ isRefused }) => isRefused)) return undefined
  const change = CHANGES.find(([, apply]) =>
    samples.every(({ text, isRefused }) => (apply(text) !== text) === isRefused),
  )
  if (change !== undefined) return change[0]

  const names = new Set(WRITERS.map(({ name }) => name))
  for (const { text, isRefused } of samples) {
    const same = unchangedBy(text)
    for (const name of names) if (same.has(name) === isRefused) names.delete(name)
  }
  return names.size === 0 ? undefined : reserialises([...names])
}

/** Says that an endpoint verifies what one of these serialisers writes: those with few settings are before the others. */
function reserialises(names: readonly string[]): string {
  const firstOfEach = new Map(names.toReversed().map((name) => [name.replace(/ with .*/, ''), name]))
  const shown = [...firstOfEach.values()].reverse().slice(0, 3)
  return `It re-serialises the body before it verifies it, as ${shown.join(', or ')} does.`
}

/** The serialisers that write a text again as it is. */
function unchangedBy(text: string): ReadonlySet<string> {
  return new Set(rewrite(text).flatMap(({ names, rewritten }) => (rewritten === text ? names : [])))
}

/** A signature that an endpoint may expect by mistake. */
interface Mistake {
  /** What it means when it is taken, and what to do. */
  readonly meaning: string
  sign(text: string, secret: string): string
}

/** Lists what to try on plain messages that are refused, of which this is one. */
export function listMistakes(text: string): readonly Mistake[] {
  const writers = rewrite(text)
    .filter(({ rewritten }) => rewritten !== text)
    .map(({ names }): Mistake => {
      const meaning = `${reserialises(names)} Verify the bytes as they arrived, before they are decoded or parsed.`
      return { meaning, sign: (other, secret) => hmac('sha1', secret, find(other, names[0])) }
    })
  return [...MISTAKES.map(([meaning, sign]) => ({ meaning, sign })), ...writers]
}

/** What the serialisers make of a text. */
function rewrite(
  text: string,
): readonly { readonly names: readonly string[]; readonly rewritten: string | undefined }[] {
  const json = readJsonText(text)
  const rewrites = json === undefined ? [] : listRewrites(json)
  return rewrites.map(({ names, write }) => ({ names, rewritten: write(Number.POSITIVE_INFINITY) }))
}

/** What one serialiser makes of a text. */
function find(text: string, name = ''): string {
  return rewrite(text).find(({ names }) => names.includes(name))?.rewritten ?? text
}

const hmac = (hash: string, key: string | Buffer, text: string): string =>
  createHmac(hash, key).update(text).digest('hex')
const sha1 = (text: string): string => createHash('sha1').update(text).digest('hex')
const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64')

const USE_HEX = 'Compare lowercase hex digits alone.'
const USE_HMAC = 'Use HMAC-SHA1.'
const USE_BYTES = 'Verify the bytes as they arrived.'

const MISTAKES: readonly (readonly [meaning: string, sign: Mistake['sign']])[] = [
  [`It expects HMAC-SHA256. ${USE_HMAC}`, (text, secret) => hmac('sha256', secret, text)],
  [`It expects HMAC-SHA512. ${USE_HMAC}`, (text, secret) => hmac('sha512', secret, text)],
  [`It expects HMAC-MD5. ${USE_HMAC}`, (text, secret) => hmac('md5', secret, text)],
  [`It expects base64. ${USE_HEX}`, (text, secret) => base64(hmac('sha1', secret, text))],
  [`It expects HMAC-SHA256 as base64. ${USE_HMAC} ${USE_HEX}`, (text, secret) => base64(hmac('sha256', secret, text))],
  [`It expects sha1= before the digits. ${USE_HEX}`, (text, secret) => `sha1=${hmac('sha1', secret, text)}`],
  [
    `It expects sha256= and HMAC-SHA256. ${USE_HMAC} ${USE_HEX}`,
    (text, secret) => `sha256=${hmac('sha256', secret, text)}`,
  ],
  [`It expects upper case. ${USE_HEX}`, (text, secret) => hmac('sha1', secret, text).toUpperCase()],
  [`It expects SHA-1 without the secret. ${USE_HMAC}`, (text) => sha1(text)],
  [`It expects SHA-1 of secret and body. ${USE_HMAC}`, (text, secret) => sha1(secret + text)],
  [`It expects SHA-1 of body and secret. ${USE_HMAC}`, (text, secret) => sha1(text + secret)],
  [
    'It takes the body for the key and the secret for the text. Exchange them.',
    (text, secret) => hmac('sha1', text, secret),
  ],
  ['Its secret is empty. Configure it.', (text) => hmac('sha1', '', text)],
  ['Its secret has a line break at its end. Remove it.', (text, secret) => hmac('sha1', `${secret}\n`, text)],
  ['Its secret has a space at its end. Remove it.', (text, secret) => hmac('sha1', `${secret} `, text)],
  ['Its secret has no white space around it, and yours has.', (text, secret) => hmac('sha1', secret.trim(), text)],
  ['Its secret is in quotation marks. Remove them.', (text, secret) => hmac('sha1', `"${secret}"`, text)],
  ['Its secret is in quotation marks. Remove them.', (text, secret) => hmac('sha1', `'${secret}'`, text)],
  ['It decodes the secret from hex. Use its text.', (text, secret) => hmac('sha1', Buffer.from(secret, 'hex'), text)],
  [
    'It decodes the secret from base64. Use its text.',
    (text, secret) => hmac('sha1', Buffer.from(secret, 'base64'), text),
  ],
  ['It verifies an empty body: something before it has read the body.', (_text, secret) => hmac('sha1', secret, '')],
  [
    `It verifies a body with a line break at its end. ${USE_BYTES}`,
    (text, secret) => hmac('sha1', secret, `${text}\n`),
  ],
  [`It verifies str(body) of Python: b'…'. ${USE_BYTES}`, (text, secret) => hmac('sha1', secret, `b'${text}'`)],
  [`It verifies an object as text. ${USE_BYTES}`, (_text, secret) => hmac('sha1', secret, '[object Object]')],
  [`It verifies the body as a JSON string. ${USE_BYTES}`, (text, secret) => hmac('sha1', secret, JSON.stringify(text))],
  [
    `It verifies the body as base64. ${USE_BYTES}`,
    (text, secret) => hmac('sha1', secret, Buffer.from(text).toString('base64')),
  ],
  [
    `It verifies the body as percent-encoded text. ${USE_BYTES}`,
    (text, secret) => hmac('sha1', secret, encodeURIComponent(text)),
  ],
]

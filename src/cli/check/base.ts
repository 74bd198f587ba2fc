/** Finds the plain message that an endpoint takes, which all other cases change; or why it takes none. */

import { createHash, createHmac } from 'node:crypto'
import { listRewrites } from '../../message/explain/json-rewrites.ts'
import { readJsonText } from '../../message/explain/json-text.ts'
import type { Exchange } from '../exchange.ts'
import { type Base, type Shot, signed } from './endpoint-case.ts'
import { describe, kindOf } from './judge.ts'
import { DEFAULT_FORM, extras, type Form, now, plainText, quote } from './message.ts'
import { reserialises } from './reserialised.ts'

/** Sends one request on a connection of its own. */
export type Fire = (shot: Shot) => Promise<Exchange>

/** What was found. */
export interface Found {
  /** Undefined when no plain message is taken: no other case says anything then. */
  readonly form?: Form
  readonly isGood: boolean
  /** What came back, what that means and what to do. */
  readonly sentence: string
  readonly forgedStatus?: number | undefined
  readonly exchange: Exchange
}

/** A form to try, and what it means when the form before was refused and this one is taken. */
type Try = readonly [change: Partial<Form>, isGood: boolean, meaning: string]

const GOES_ON = 'All other cases go on with it.'

const TRIES: readonly Try[] = [
  [
    { isSpaced: true },
    false,
    'With a space after each comma and colon, it got a 2xx. It re-serialises the body before it verifies it, as json.dumps of Python does, and most senders write no spaces. Verify the bytes as they arrived, before they are decoded or parsed.',
  ],
  [{ changes: () => ({ context: undefined }) }, true, `Without a context object, it got a 2xx. ${GOES_ON}`],
  [
    { changes: () => ({ timestamp: now().replace(/\.\d+/, '') }) },
    false,
    'With a timestamp without milliseconds, it got a 2xx. A timestamp is ISO 8601 with milliseconds and a Z: parse it so.',
  ],
  [
    { changes: extras },
    false,
    'With messageId, receivedAt and others, it got a 2xx. The specification does not show these fields: do not require them.',
  ],
  [{ type: 'identify' }, true, `An identify got a 2xx. ${GOES_ON}`],
  [{ type: 'page' }, true, `A page got a 2xx. ${GOES_ON}`],
  [{ type: 'group' }, true, `A group got a 2xx. ${GOES_ON}`],
]

const hmac = (hash: string, secret: string | Buffer, text: string): string =>
  createHmac(hash, secret).update(text).digest('hex')
const base64 = (hex: string): string => Buffer.from(hex, 'hex').toString('base64')

/** A signature of something else, and what it means when that is taken. */
type Mistake = readonly [meaning: string, sign: (text: string, secret: string) => string]

/** What people verify in place of the HMAC-SHA1 of the bytes. */
const MISTAKES: readonly Mistake[] = [
  ['It expects HMAC-SHA256. Use SHA-1.', (text, secret) => hmac('sha256', secret, text)],
  ['It expects base64. Compare hex digits.', (text, secret) => base64(hmac('sha1', secret, text))],
  ['It expects HMAC-SHA256 as base64. Use SHA-1, as hex.', (text, secret) => base64(hmac('sha256', secret, text))],
  [
    'It expects sha1= before the digits. Compare the digits alone.',
    (text, secret) => `sha1=${hmac('sha1', secret, text)}`,
  ],
  [
    'It expects sha256= and HMAC-SHA256. Use SHA-1, as hex alone.',
    (text, secret) => `sha256=${hmac('sha256', secret, text)}`,
  ],
  ['It expects upper case. Compare lowercase digits.', (text, secret) => hmac('sha1', secret, text).toUpperCase()],
  ['It expects SHA-1 without the secret. Use HMAC.', (text) => createHash('sha1').update(text).digest('hex')],
  [
    'It expects SHA-1 of secret and body. Use HMAC.',
    (text, secret) =>
      createHash('sha1')
        .update(secret + text)
        .digest('hex'),
  ],
  [
    'It expects SHA-1 of body and secret. Use HMAC.',
    (text, secret) =>
      createHash('sha1')
        .update(text + secret)
        .digest('hex'),
  ],
  ['It expects HMAC-MD5. Use SHA-1.', (text, secret) => hmac('md5', secret, text)],
  ['It expects HMAC-SHA512. Use SHA-1.', (text, secret) => hmac('sha512', secret, text)],
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
  ['It verifies a body with a line break at its end.', (text, secret) => hmac('sha1', secret, `${text}\n`)],
  ["It verifies str(body) of Python: b'…'. Verify the bytes.", (text, secret) => hmac('sha1', secret, `b'${text}'`)],
  ['It verifies an object as text. Verify the bytes.', (_text, secret) => hmac('sha1', secret, '[object Object]')],
  ['It verifies the body as a JSON string. Verify the bytes.', (text, secret) => hmac('sha1', secret, quote(text))],
]

/** What the serialisers make of a text, where they change it. */
function rewritings(text: string): readonly Mistake[] {
  const json = readJsonText(text)
  const rewrites = json === undefined ? [] : listRewrites(json)
  return rewrites.flatMap(({ names, write }): Mistake[] => {
    const rewritten = write(Number.POSITIVE_INFINITY)
    if (rewritten === undefined || rewritten === text) return []
    const meaning = `${reserialises(names)} Verify the bytes as they arrived, before they are decoded or parsed.`
    return [[meaning, (_text, secret) => hmac('sha1', secret, rewritten)]]
  })
}

/** Sends the plain message in its forms until one is taken. */
export async function findBase(fire: Fire, given: Omit<Base, 'form'>): Promise<Found> {
  const plain = (form: Form): string => plainText(form, 'plain-message')
  const first = await fire(signed({ ...given, form: DEFAULT_FORM }, plain(DEFAULT_FORM)))
  const kind = kindOf(first)
  const got = `Sent a signed message. Got ${describe(first)}.`
  if (kind === 'timeout' || kind === 'redirect')
    return { isGood: false, exchange: first, sentence: `${got} ${MEANINGS[kind]}` }

  const forge = signed({ ...given, form: DEFAULT_FORM }, plain(DEFAULT_FORM), '0'.repeat(40))
  const forgedStatus = first.error === 'http' ? undefined : (await fire(forge)).status
  if (kind === 'success') return { form: DEFAULT_FORM, isGood: true, exchange: first, sentence: got, forgedStatus }

  for (const [change, isGood, meaning] of TRIES) {
    const form = { ...DEFAULT_FORM, ...change }
    const exchange = await fire(signed({ ...given, form }, plain(form)))
    if (kindOf(exchange) === 'success')
      return { form, isGood, exchange: first, sentence: `${got} ${meaning}`, forgedStatus }
    if (kindOf(exchange) === 'timeout') break
  }
  const reason = await findReason(fire, given, first, forgedStatus)
  return { isGood: false, exchange: first, sentence: `${got} ${reason}`, forgedStatus }
}

const MEANINGS = {
  timeout: 'A sender stops after 5 s and sends the message again later. Answer first, and do slow work afterwards.',
  redirect:
    'Redirects are not followed: every message is lost. Give the sender the URL that it leads to, or answer here.',
  failure: 'A 5xx is retried for up to four hours, in vain. See the log of the endpoint.',
  broken: 'A sender tries again for up to four hours, in vain. See the log of the endpoint.',
}

const OF_STATUS: Readonly<Record<number, string>> = {
  404: 'Nothing is at this path. Check the path of the URL, and that the endpoint is mounted there for POST.',
  405: 'It takes no POST at this path. Check the path of the URL, and that the endpoint is mounted for POST.',
  415: 'It refuses the content type application/json. Take it.',
  429: 'It limits how many requests it takes. Let it take those of a check.',
}

async function findReason(
  fire: Fire,
  given: Omit<Base, 'form'>,
  first: Exchange,
  forgedStatus: number | undefined,
): Promise<string> {
  const { status = 0 } = first
  if (status >= 500) return MEANINGS.failure
  if (status === 0) return MEANINGS.broken
  const known = OF_STATUS[status]
  if (known !== undefined) return known
  const lost = 'A 4xx is not retried: every message is lost.'
  if (status !== forgedStatus) {
    return `${lost} A forged message gets ${forgedStatus}: here the signature was right, but not the content. Take a message that has no more than the specification shows.`
  }
  const text = plainText(DEFAULT_FORM, 'plain-message')
  for (const [meaning, sign] of [...MISTAKES, ...rewritings(text)]) {
    const exchange = await fire(signed({ ...given, form: DEFAULT_FORM }, text, sign(text, given.secret)))
    if (kindOf(exchange) === 'success') return `${lost} ${meaning}`
    if (kindOf(exchange) === 'timeout') break
  }
  return `${lost} A forged message gets the same: it has another secret, or verifies other bytes than those that arrive. Compare the secret at both ends, and log the body and the signature that it verifies: \`hookline verify\` says what is wrong with them.`
}

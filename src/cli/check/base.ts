/** Finds the plain message that an endpoint takes, which all other cases change; or why it takes none. */

import type { Exchange } from '../exchange.ts'
import { type Base, type Shot, signed } from './endpoint-case.ts'
import { describe, kindOf, LOST } from './judge.ts'
import { DEFAULT_FORM, extras, type Form, now, plainText } from './message.ts'
import { listMistakes } from './mistakes.ts'

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

/** Where the signature was refused, and not the content. */
const SPACED: Try = [
  { isSpaced: true },
  false,
  'With a space after each comma and colon, it got a 2xx. It re-serialises the body before it verifies it, as json.dumps of Python does, and most senders write no spaces. Verify the bytes as they arrived, before they are decoded or parsed.',
]

const TRIES: readonly Try[] = [
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

/** Sends the plain message in its forms until one is taken. */
export async function findBase(fire: Fire, given: Omit<Base, 'form'>): Promise<Found> {
  const send = (form: Form, sign?: Sign): Promise<Exchange> => {
    const text = plainText(form, PLAIN)
    return fire(signed({ ...given, form }, text, sign?.(text, given.secret)))
  }
  const exchange = await send(DEFAULT_FORM)
  const got = `Sent a signed message. Got ${describe(exchange)}.`
  if (exchange.error === 'timeout' || exchange.error === 'http') {
    return { isGood: false, exchange, sentence: `${got} ${LOST[kindOf(exchange)]}` }
  }
  const forgedStatus = (await send(DEFAULT_FORM, () => '0'.repeat(40))).status
  const found = { exchange, forgedStatus }
  if (isTaken(exchange)) return { ...found, form: DEFAULT_FORM, isGood: true, sentence: got }

  const isOfContent = exchange.status !== forgedStatus
  for (const [change, isGood, meaning] of isOfContent ? TRIES : [SPACED, ...TRIES]) {
    const form = { ...DEFAULT_FORM, ...change }
    if (isTaken(await send(form))) return { ...found, form, isGood, sentence: `${got} ${meaning}` }
  }
  const reason = await findReason(found, given.secret, send, () => fire(elsewhere({ ...given, form: DEFAULT_FORM })))
  return { ...found, isGood: false, sentence: `${got} ${reason}` }
}

const PLAIN = 'plain-message'

type Sign = (text: string, secret: string) => string

function isTaken(exchange: Exchange): boolean {
  return kindOf(exchange) === 'success'
}

/** A message with its signature in headers that other services use. */
function elsewhere(base: Base): Shot {
  const { body, headers } = signed(base, plainText(base.form, PLAIN))
  const { 'X-Signature': signature = '', ...others } = headers
  const names = ['X-Hub-Signature', 'X-Signature-SHA1', 'X-Webhook-Signature', 'X-Segment-Signature', 'Signature']
  return { body, headers: { ...others, ...Object.fromEntries(names.map((name) => [name, signature])) } }
}

const OF_STATUS: Readonly<Record<number, string>> = {
  404: 'Nothing is at this path. Check the path of the URL, and that the endpoint is mounted there for POST.',
  405: 'It takes no POST at this path. Check the path of the URL, and that the endpoint is mounted for POST.',
  415: 'It refuses the content type application/json. Take it.',
  429: 'It limits how many requests it takes. Let it take those of a check, and those of a sender.',
}

const UNKNOWN =
  'A forged message gets the same: it has another secret, or verifies other bytes than those that arrive. Compare the secret at both ends, and log the body and the signature that it verifies: `hookline verify` says what is wrong with them.'

/** Says why no plain message is taken, as far as other signatures show it. */
async function findReason(
  { exchange, forgedStatus }: Pick<Found, 'exchange' | 'forgedStatus'>,
  secret: string,
  send: (form: Form, sign: Sign) => Promise<Exchange>,
  sendElsewhere: () => Promise<Exchange>,
): Promise<string> {
  const { status = 0, headers } = exchange
  const kind = kindOf(exchange)
  const meaning = LOST[kind]
  const known = OF_STATUS[status]
  if (known !== undefined && status === forgedStatus) return known
  if (status !== forgedStatus) {
    if (kind !== 'refusal') return meaning
    return `${meaning} A forged message gets ${forgedStatus}: here the signature was right, but not the content. Take a message that has no more than the specification shows.`
  }
  for (const mistake of listMistakes(plainText(DEFAULT_FORM, PLAIN), secret)) {
    if (isTaken(await send(DEFAULT_FORM, mistake.sign))) return `${meaning} ${mistake.meaning}`
  }
  if (isTaken(await sendElsewhere())) return `${meaning} It reads the signature from another header. Read X-Signature.`
  if (kind !== 'refusal') return meaning
  const scheme = /^\w+/.exec(String(headers['www-authenticate'] ?? ''))?.[0] ?? ''
  if (/^(basic|bearer|digest)$/i.test(scheme)) {
    return `${meaning} It asks for ${scheme} authentication. Pass what the sender passes: --header "Authorization: …".`
  }
  const before = status === 403 ? ' Or something before it refuses: a firewall, or a check of CSRF tokens.' : ''
  return `${meaning} ${UNKNOWN}${before}`
}

/** Finds a plain message that the endpoint accepts, or explains why it accepts none. All other cases are variations of this message. */

import type { Exchange } from '../../../../src/internals.ts'
import { describe, kindOf, lossOf, toSentence } from './judge.ts'
import { type Base, type CaseRequest, DEFAULT_FORM, extras, type Form, now, plainText, signed } from './message.ts'
import { listMistakes } from './mistakes.ts'

export interface Found {
  /** The form of the accepted message; undefined when no plain message is accepted. Then the other cases prove nothing. */
  readonly form?: Form
  readonly isGood: boolean
  readonly sentence: string
  readonly forgedStatus?: number | undefined
  readonly exchange: Exchange
}

/** A form to try, whether the case passes if only this form is accepted, and a text that explains that result. */
type Try = readonly [change: Partial<Form>, isGood: boolean, meaning: string]

/** The form to try first when the signature was refused. */
const SPACED: Try = [
  { isSpaced: true },
  false,
  "With a space after each comma and colon, the message got a 2xx. The endpoint re-serialises the body before verifying it, as Python's json.dumps does, but most senders write no spaces. Verify the bytes as they arrived, before they are decoded or parsed.",
]

const TRIES: readonly Try[] = [
  [
    { changes: () => ({ context: undefined }) },
    true,
    'Without a context object, the message got a 2xx. All other cases use this form.',
  ],
  [
    { changes: () => ({ timestamp: now().replace(/\.\d+/, '') }) },
    false,
    'With a timestamp without milliseconds, the message got a 2xx. A timestamp is ISO 8601 with milliseconds and a Z: accept milliseconds.',
  ],
  [
    { changes: extras },
    false,
    'With messageId, receivedAt and other fields, the message got a 2xx. The specification does not show these fields: do not require them.',
  ],
  ...(['identify', 'page', 'group'] as const).map((type): Try => {
    return [
      { type },
      true,
      `${type === 'identify' ? 'An' : 'A'} ${type} message got a 2xx. All other cases use this type.`,
    ]
  }),
]

const OF_STATUS: Readonly<Record<number, string>> = {
  404: 'Nothing is at this path. Check the path of the URL, and that the endpoint is mounted there for POST.',
  405: 'The endpoint does not accept POST at this path. Check the path of the URL, and that the endpoint is mounted for POST.',
  415: 'The endpoint refuses the content type application/json. Accept it.',
  429: 'The endpoint limits the rate of requests. Raise the limit for checks and senders.',
}

/** Sends the plain message in one form after another until one is accepted. */
export async function findPlain(
  send: (request: CaseRequest) => Promise<Exchange>,
  given: Omit<Base, 'form'>,
): Promise<Found> {
  const { secret, request } = given
  const plainForm = { ...DEFAULT_FORM, fields: request.fields }
  const sendAs = (form: Form, prove?: (text: string, secret: string) => string): Promise<Exchange> => {
    const text = plainText(form, 'plain-message')
    return send(signed({ ...given, form }, text, prove?.(text, secret)))
  }
  const exchange = await sendAs(plainForm)
  const got = `Sent a signed message. ${toSentence(describe(exchange))}`
  if (exchange.error === 'timeout' || exchange.error === 'http') {
    return { isGood: false, exchange, sentence: `${got} ${lossOf(exchange)}` }
  }
  const forgedStatus = (await sendAs(plainForm, () => '0'.repeat(40))).status
  const found = { exchange, forgedStatus }
  if (isAccepted(exchange)) return { ...found, form: plainForm, isGood: true, sentence: got }

  const isOfContent = exchange.status !== forgedStatus
  for (const [change, isGood, meaning] of isOfContent ? TRIES : [SPACED, ...TRIES]) {
    const form = { ...plainForm, ...change }
    if (isAccepted(await sendAs(form))) return { ...found, form, isGood, sentence: `${got} ${meaning}` }
  }
  return { ...found, isGood: false, sentence: `${got} ${await findReason()}` }

  function mistakes(): ReturnType<typeof listMistakes> {
    return request.signs === 'header' ? [] : listMistakes(plainText(plainForm, 'plain-message'), secret)
  }

  /** Explains why no plain message is accepted, judging by the answers to messages with other signatures. */
  async function findReason(): Promise<string> {
    const { status = 0, headers } = exchange
    const meaning = lossOf(exchange)
    const isRefusal = kindOf(exchange) === 'refusal'
    if (isOfContent) {
      if (!isRefusal) return meaning
      return `${meaning} A forged message gets ${forgedStatus}, so here the signature was accepted, but not the content. Accept a message that has only the fields of the specification.`
    }
    const known = OF_STATUS[status]
    if (known !== undefined) return known
    for (const mistake of mistakes()) {
      if (isAccepted(await sendAs(plainForm, mistake.sign))) return `${meaning} ${mistake.meaning}`
    }
    if (!isRefusal) return meaning
    const [scheme] = /^(basic|bearer|digest)\b/i.exec(String(headers['www-authenticate'] ?? '')) ?? []
    if (scheme !== undefined) {
      return `${meaning} The endpoint asks for ${scheme} authentication. Pass the header that the sender uses: --header "Authorization: …".`
    }
    if (request.signs === 'header') {
      return `${meaning} A message with another value gets the same answer: the endpoint expects another value, or reads a header other than ${request.proofHeader}. Compare both at the sender and at the endpoint.`
    }
    return `${meaning} A forged message gets the same answer: the endpoint has another secret, reads a header other than X-Signature, or does not verify the bytes that arrive. Compare the secret with that of the sender, and log the body and the signature that the endpoint verifies: \`hookline verify\` says what is wrong with them.`
  }
}

function isAccepted(exchange: Exchange): boolean {
  return kindOf(exchange) === 'success'
}

/** The cases of how requests arrive: large, twice, in pieces, at once; and of bodies that are signed and no message. */

import { type Draft, defineCase, type EndpointCase, type Shot, signed } from './endpoint-case.ts'
import { type Form, messageOf, newId, object, plainText, quote, write } from './message.ts'

const BODY = 'Outbound delivery: Request body'

/** A body that is no message, or hardly one. Refusing it is right, and so is taking it; failing is not. */
function survived(id: string, sends: string, advice: string, text: (form: Form) => string): EndpointCase {
  const shots: Draft['shots'] = (base) => signed(base, text(base.form))
  return defineCase('survived', { id, sends, section: BODY, advice, shots, severity: 'warn' })
}

const PARSE = 'Catch the error of the parser, and answer 400.'
const CHECK = 'Check what the parser returned before a field of it is read, and answer 400.'

/** Says that an endpoint is slow, whatever it answers. */
export const ANSWER_IN_TIME: EndpointCase = defineCase('answered', {
  id: 'answer-in-time',
  sends: 'another signed message',
  section: 'Limits: Response time allowed per request',
  advice: '',
  shots: (base) => signed(base, plainText(base.form, 'answer-in-time')),
})

/** Correct messages that arrive in other ways than usual, and one that databases refuse. */
export const TRAFFIC_CASES: readonly EndpointCase[] = [
  defineCase('taken', {
    id: 'retry-identical',
    sends: 'the same message twice, as a retry is',
    section: 'Errors: No response within 5 seconds',
    advice:
      'A sender that lost the first answer sends the message again: answer a message that you know as you did before.',
    shots: (base) => {
      const shot = signed(base, plainText(base.form, 'retry-identical'))
      return [shot, shot]
    },
  }),
  defineCase('taken', {
    id: 'large-body',
    sends: 'a message of 400 KB',
    section: 'Limits: Response time allowed per request',
    advice:
      'Read the body to its end before it is verified, and raise its limit, in the framework and in proxies before it.',
    shots: (base) => {
      const fields = object({ check: quote('large-body'), filler: quote('x'.repeat(400_000)) })
      return signed(base, write(base.form, messageOf(base.form, fields)))
    },
  }),
  defineCase('taken', {
    id: 'body-in-pieces',
    sends: 'a message whose bytes arrive in two pieces, 100 ms apart',
    section: 'Outbound delivery: Request body',
    advice: 'Read as many bytes as Content-Length says, not only those of the first packet.',
    how: 'in_pieces',
    shots: (base) => signed(base, plainText(base.form, 'body-in-pieces')),
  }),
  defineCase('taken', {
    id: 'header-names-in-lower-case',
    sends: 'a message with the names of its headers in lower case',
    section: 'Outbound delivery: Request header X-Signature',
    advice: 'Names of headers have no case (RFC 9110, section 5.1), and proxies change it: compare them without.',
    shots: (base) => {
      const { body, headers } = signed(base, plainText(base.form, 'header-names-in-lower-case'))
      return {
        body,
        headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      }
    },
  }),
  defineCase('taken', {
    id: 'nul',
    sends: 'a message with \\u0000 in a text',
    section: BODY,
    advice: 'PostgreSQL refuses that character in text and in jsonb: remove it before the message is stored.',
    severity: 'warn',
    shots: (base) => signed(base, write(base.form, messageOf(base.form, '{"check":"nul","value":"a\\u0000b"}'))),
  }),
]

/** Signed bodies that are no messages, or hardly. */
export const BODY_CASES: readonly EndpointCase[] = [
  survived(
    'lone-surrogate',
    'a message with half of a surrogate pair, \\ud800',
    'JSON.stringify of JavaScript writes it: replace it before the text is encoded or stored.',
    (form) => write(form, messageOf(form, '{"check":"lone-surrogate","value":"a\\ud800b"}')),
  ),
  survived('signed-not-json', 'a signed body that is not JSON', PARSE, () => `hookline-check ${newId()}`),
  survived('signed-cut-json', 'a signed body that ends in the middle of a message', PARSE, (form) =>
    plainText(form, 'signed-cut-json').slice(0, -20),
  ),
  survived('signed-empty-body', 'an empty body that is signed', PARSE, () => ''),
  survived('signed-null', 'the signed body null', CHECK, () => 'null'),
  survived('signed-list', 'a signed list of messages', CHECK, (form) => `[${plainText(form, 'signed-list')}]`),
  survived('signed-empty-object', 'the signed body {}', CHECK, () => '{}'),
  survived(
    'unknown-type',
    'a message of a type that does not exist',
    'Answer 2xx or 4xx: a 5xx brings it back.',
    (form) => plainText(form, 'unknown-type', { type: quote('hookline-check') }),
  ),
  survived(
    'byte-order-mark',
    'a message with a byte order mark before it',
    `A parser may refuse it. ${PARSE}`,
    (form) => `\ufeff${plainText(form, 'byte-order-mark')}`,
  ),
]

/** What is wrong with connections only. Last: an endpoint may have had enough of forged messages by then. */
export const CONNECTION_CASES: readonly EndpointCase[] = [
  defineCase('taken', {
    id: 'keep-alive',
    sends: 'four messages over one connection, the second of them forged',
    section: 'Outbound delivery: Method',
    advice: 'Read each body to its end also when it is refused, or close the connection and say so: Connection: close.',
    severity: 'warn',
    how: 'kept_alive',
    shots: (base) => {
      const plain = (): Shot => signed(base, plainText(base.form, 'keep-alive'))
      const forged = signed(base, plainText(base.form, 'keep-alive'), '0'.repeat(40))
      return [plain(), { ...forged, expects: 'answered' }, plain(), plain()]
    },
  }),
  defineCase('taken', {
    id: 'twenty-at-once',
    sends: '20 messages at once',
    section: 'Limits: Response time allowed per request',
    advice: 'A sender posts many messages at a time: answer them side by side, or each of them soon.',
    severity: 'warn',
    how: 'at_once',
    shots: (base) => Array.from({ length: 20 }, () => signed(base, plainText(base.form, 'twenty-at-once'))),
  }),
]

/** The cases of signatures that are not right: what was not signed with the secret must be refused, and by a 4xx. */

import { createHash, createHmac } from 'node:crypto'
import { sign } from '../../message/signature.ts'
import { type Base, type Draft, defineCase, type EndpointCase, type Shot, signed } from './endpoint-case.ts'
import { plainText, quote } from './message.ts'
import { TYPE_CASES } from './message-cases.ts'

/** The signature to send with a plain message; null for none. */
type Forge = (right: string, text: string, base: Base) => string | null

function forged(id: string, sends: string, advice: string, forge: Forge, rest: Partial<Draft> = {}): EndpointCase {
  const shots = (base: Base): Shot => {
    const text = plainText(base.form, id)
    return signed(base, text, forge(sign(text, base.secret), text, base))
  }
  return refused(id, sends, advice, shots, rest)
}

function refused(id: string, sends: string, advice: string, shots: Draft['shots'], rest: Partial<Draft> = {}) {
  return defineCase('refused', { id, sends, section: 'Authentication 3', advice, shots, ...rest })
}

const ANOTHER = 'another secret of hookline check'
const PARTIAL = 'It compares a part of the signature only: compare all 40 digits.'
const CRASH = 'Check that the header has 40 hex digits before anything else is done with it.'
const OTHER_DIGEST = 'Compare the lowercase hex HMAC-SHA1 only.'
const TOLERANT = { severity: 'warn', section: 'Authentication 2' } as const
const TOLERANCE = 'The specification has lowercase hex digits and nothing else.'

/** What forges a signature: without one, with another, with a part of the right one, over other bytes. */
export const SIGNATURE_CASES: readonly EndpointCase[] = [
  forged('signature-missing', 'a message without X-Signature', 'Refuse a request without the header.', () => null),
  forged('signature-empty', 'a message with an empty X-Signature', 'Refuse an empty header.', () => ''),
  refused('signature-forged', 'a message that is signed with another secret', 'Verify the signature.', (base) => {
    const text = plainText(base.form, 'signature-forged')
    return { ...signed(base, text, sign(text, ANOTHER)), secret: sign(text, base.secret) }
  }),
  refused(
    'signature-forged-types',
    'a message of each type that is signed with another secret',
    'Verify the signature before the type is looked at, whatever the type is.',
    (base) => TYPE_CASES.flatMap(({ shots }) => shots(base)).map(({ body }) => signed(base, body, sign(body, ANOTHER))),
  ),
  forged('signature-malformed', 'a message with a signature that is a word', CRASH, () => 'hookline-check'),
  forged('signature-not-hex', 'a message with a signature of 40 characters that are not hex digits', CRASH, () =>
    'z'.repeat(40),
  ),
  forged(
    'signature-not-ascii',
    'a message with a signature of 40 characters that are not ASCII',
    `${CRASH} In Python, hmac.compare_digest raises an error for such text.`,
    () => 'é'.repeat(40),
    { severity: 'warn' },
  ),
  forged('signature-start', 'a message with the first 8 digits of the right signature', PARTIAL, (right) =>
    right.slice(0, 8),
  ),
  forged('signature-truncated', 'a message with the right signature without its last digit', PARTIAL, (right) =>
    right.slice(0, -1),
  ),
  forged('signature-last-digit', 'a message with the right signature with another last digit', PARTIAL, (right) =>
    flip(right, 39),
  ),
  forged('signature-first-digit', 'a message with the right signature with another first digit', PARTIAL, (right) =>
    flip(right, 0),
  ),
  forged(
    'signature-longer',
    'a message with the right signature and two hex digits more',
    PARTIAL,
    (right) => `${right}00`,
  ),
  forged(
    'signature-sha256',
    'a message with an HMAC-SHA256 in place of HMAC-SHA1',
    OTHER_DIGEST,
    (_right, text, { secret }) => createHmac('sha256', secret).update(text).digest('hex'),
  ),
  forged(
    'signature-without-secret',
    'a message with the SHA-1 of the body, without the secret',
    'Anybody can compute it: key the digest with the secret.',
    (_right, text) => createHash('sha1').update(text).digest('hex'),
  ),
  forged(
    'signature-empty-secret',
    'a message that is signed with an empty secret',
    'Anybody can compute it: refuse everything while no secret is configured.',
    (_right, text) => createHmac('sha1', '').update(text).digest('hex'),
  ),
  refused(
    'signature-of-other-body',
    'a message, and then another one with the signature of the first',
    'Compute the digest of the body of each request.',
    (base) => {
      const [first, second] = [1, 2].map(() => plainText(base.form, 'signature-of-other-body')) as [string, string]
      return [{ ...signed(base, first), expects: 'answered' }, signed(base, second, sign(first, base.secret))]
    },
  ),
  forged(
    'signature-of-nothing',
    'a message with the right signature of an empty body',
    'It verifies an empty body: read the body before anything else consumes it.',
    (_right, _text, { secret }) => sign('', secret),
  ),
  refused(
    'body-changed',
    'a message that was changed after it was signed',
    'Compute the digest of the whole body.',
    (base) => {
      const text = plainText(base.form, 'body-changed')
      return signed(base, text.replace('2.1"', '2.9"').replace('body-changed', 'body_changed'), sign(text, base.secret))
    },
  ),
  refused(
    'body-extended',
    'a message with a line break at its end that was not signed',
    'Compute the digest of the bytes that arrived, without trimming or parsing them.',
    (base) => {
      const text = plainText(base.form, 'body-extended')
      return signed(base, `${text}\n`, sign(text, base.secret))
    },
  ),
  refused(
    'body-end-changed',
    'a message of 100 KB whose last value was changed after it was signed',
    'Compute the digest of the whole body, not of its first part.',
    (base) => {
      const text = plainText(base.form, 'body-end-changed', { zz: quote(`${'x'.repeat(100_000)}1`) })
      return signed(base, text.replace(/1"}$/, '2"}'), sign(text, base.secret))
    },
  ),
  refused(
    'forged-not-json',
    'a body that is not JSON, with a forged signature',
    'Verify the signature before the body is parsed.',
    (base) => signed(base, '{"type":"track', sign('', ANOTHER)),
  ),
  refused(
    'unsigned-empty-body',
    'an empty body without X-Signature',
    'Verify the signature before the body is parsed.',
    (base) => signed(base, '', null),
  ),
  forged(
    'signature-upper-case',
    'a message with the right signature in upper case',
    TOLERANCE,
    (right) => right.toUpperCase(),
    TOLERANT,
  ),
  forged(
    'signature-with-tail',
    'a message with the right signature and text behind it',
    TOLERANCE,
    (right) => `${right}zz`,
    TOLERANT,
  ),
  forged(
    'signature-prefixed',
    'a message with the right signature behind sha1=',
    TOLERANCE,
    (right) => `sha1=${right}`,
    TOLERANT,
  ),
  forged(
    'signature-base64',
    'a message with the right signature as base64',
    TOLERANCE,
    (right) => Buffer.from(right, 'hex').toString('base64'),
    TOLERANT,
  ),
  defineCase('not_taken', {
    id: 'forged-put',
    sends: 'a PUT with a forged signature',
    section: 'Outbound delivery: Method',
    advice: 'The sender uses POST only: refuse other methods, or verify them as well.',
    severity: 'warn',
    shots: (base) => ({ ...signed(base, plainText(base.form, 'forged-put'), sign('', ANOTHER)), method: 'PUT' }),
  }),
]

function flip(signature: string, place: number): string {
  const digit = signature[place] === '0' ? '1' : '0'
  return signature.slice(0, place) + digit + signature.slice(place + 1)
}

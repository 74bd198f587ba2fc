/** `hookline check URL`, against endpoints in other languages with one fault each: the right cases fail, and no others. */

import { describe, expect, it, vi } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { findFaults, type Language, programsOf, startOther } from './endpoints/start.ts'

const REWRITTEN = [
  'body-extended',
  'bytes-decimal',
  'bytes-escapes',
  'bytes-exponent',
  'bytes-indented',
  'bytes-line-break-at-end',
  'bytes-line-separator',
  'bytes-space-at-start',
  'bytes-spaces',
]
const ESCAPED = ['bytes-escaped-non-ascii', 'bytes-escaped-slash']
const PARSED_FIRST = ['forged-not-json', 'unsigned-empty-body']
const TRIMMED = ['body-extended', 'bytes-line-break-at-end', 'bytes-space-at-start']

type Fault = readonly [language: Language, fault: string, fails: readonly string[], says: RegExp]

const FAULTS: readonly Fault[] = [
  // The bytes are changed before they are verified.
  [
    'python3',
    'json-dumps',
    [...REWRITTEN, ...ESCAPED, ...PARSED_FIRST, 'plain-message', 'bytes-non-ascii'],
    /as json\.dumps of Python does/,
  ],
  [
    'python3',
    'json-dumps-sorted',
    [...REWRITTEN, ...ESCAPED, ...PARSED_FIRST, 'bytes-non-ascii', 'bytes-key-order', 'bytes-index-keys'],
    /json\.dumps of Python with sort_keys/,
  ],
  [
    'php',
    'json-encode',
    [...REWRITTEN, 'bytes-escaped-non-ascii', 'bytes-float', 'bytes-html', 'bytes-non-ascii', 'bytes-slash'],
    /as json_encode of PHP does/,
  ],
  ['ruby', 'to-json', [...REWRITTEN, ...ESCAPED], /as JSON\.generate of Ruby/],
  ['ruby', 'pretty', ['plain-message'], /pretty_generate|an indent of 2/],
  [
    'node',
    'stringify',
    [...REWRITTEN, ...ESCAPED, ...PARSED_FIRST, 'bytes-float', 'bytes-big-integer', 'bytes-index-keys'],
    /as JSON\.stringify of JavaScript does/,
  ],
  ['python3', 'strip', TRIMMED, /It trims the body/],
  ['python3', 'latin-1', ['bytes-non-ascii', 'bytes-line-separator'], /It decodes the body as Latin-1/],
  ['python3', 'text-mode', ['bytes-indented'], /It changes line breaks/],
  ['node', 'text', ['bytes-non-ascii'], /It normalises Unicode/],
  ['python3', 'first-4096', ['large-body'], /400 KB\. Got 401\./],
  ['node', 'first-chunk', ['body-in-pieces', 'large-body'], /not only those of the first packet/],

  // Another signature is expected.
  ['python3', 'sha256', ['plain-message'], /It expects HMAC-SHA256/],
  ['python3', 'base64', ['plain-message'], /It expects base64/],
  ['python3', 'str-of-bytes', ['plain-message'], /It verifies str\(body\) of Python/],
  ['node', 'quoted-secret', ['plain-message'], /Its secret is in quotation marks/],
  ['php', 'form', ['plain-message'], /It verifies an empty body/],

  // What was not signed is taken, or not refused by a 4xx.
  ['python3', 'missing-is-fine', ['signature-missing'], /Got 200\. A 2xx takes it\./],
  ['python3', 'empty-is-fine', ['signature-missing', 'signature-empty'], /Refuse an empty header/],
  ['python3', 'crash-on-missing', ['signature-missing', 'unsigned-empty-body'], /the connection was closed/],
  ['python3', 'prefix', ['signature-start', 'signature-truncated'], /compares a part of the signature/],
  ['python3', 'first-ten', ['signature-last-digit', 'signature-longer', 'signature-truncated'], /compares a part/],
  [
    'php',
    'strncmp',
    ['signature-missing', 'signature-empty', 'signature-start', 'signature-truncated'],
    /compares a part/,
  ],
  [
    'python3',
    'bytes-fromhex',
    ['signature-malformed', 'signature-not-hex', 'signature-truncated'],
    /has 40 hex digits/,
  ],
  ['python3', 'also-sha256', ['signature-sha256'], /Compare the lowercase hex HMAC-SHA1 only/],
  ['python3', 'unkeyed', ['signature-without-secret'], /Anybody can compute it/],
  ['python3', 'one-body', ['signature-of-other-body'], /the body of each request/],
  ['python3', 'trusts-delete', ['signature-forged-types'], /Got 200 for request 7 of 7\. .*whatever the type is/],
  ['python3', 'parses-first', PARSED_FIRST, /before the body is parsed/],

  // Correct messages are refused.
  ['python3', 'unknown-fields', ['unknown-fields'], /Got 422\. .* A forged message gets 401/],
  ['python3', 'needs-message-id', ['plain-message'], /With messageId, receivedAt and others/],
  ['python3', 'needs-user-id', ['anonymous-id'], /take the anonymousId in its place/],
  ['python3', 'needs-version', ['type-delete'], /Got 422/],
  ['python3', 'no-screen', ['type-screen'], /Got 400/],
  ['python3', 'no-track', ['type-track'], /Got 422/],
  ['python3', 'no-context', ['context-object'], /Got 422/],
  ['python3', 'string-traits', ['audience-traits'], /boolean traits/],
  ['python3', 'too-old', ['old-timestamp'], /do not refuse one for its age/],
  ['python3', 'conflict', ['retry-identical'], /Got 409 for request 2 of 2/],
  ['ruby', 'no-alias', ['type-alias'], /Got 500\. A 5xx is retried for up to four hours/],
  ['python3', 'limit-100-kb', ['large-body'], /raise its limit/],
  ['python3', 'hangs-on-large', ['large-body'], /no complete answer within 5 s/],
  ['node', 'resets', ['type-group'], /no answer: the connection was closed/],
  ['node', 'half', ['type-page'], /no complete answer within 5 s/],
  ['node', 'header-case', ['header-names-in-lower-case'], /Names of headers have no case/],
  ['python3', 'redirects', ['plain-message'], /Got 302 to \/login\. Redirects are not followed/],
  ['python3', 'always-500', ['plain-message'], /Got 500\. A 5xx is retried for up to four hours/],
  ['python3', 'hangs', ['plain-message', 'answer-in-time'], /Not sent: two requests got no complete answer/],

  // What ends the run, or is said of it.
  ['node', 'limits', ['bytes-index-keys', 'bytes-key-order'], /Not sent: it limits how many requests it takes/],
  ['node', 'dies', ['signed-null'], /nothing responds since then\. One request must not end the server/],
  ['node', 'reveals', ['signature-forged'], /the right signature in the body of the answer/],
  ['node', 'asks-for-login', ['plain-message'], /It asks for Basic authentication\. .* --header/],
  ['node', 'other-header', ['plain-message'], /reads another header than X-Signature/],
  ['node', 'unknown-user', ['plain-message'], /Got 404\. .* A forged message gets 401/],

  // What warns.
  ['python3', 'any-case', [], /upper case\. Got 200/],
  ['python3', 'crash-on-json', [], /not JSON\. Got 500/],
  ['python3', 'nul', [], /\\u0000 in a text\. Got 500/],
  ['python3', 'unread-body', [], /four messages over one connection, .* Got 400 for request 3 of 4/],
  ['node', 'busy', [], /20 messages at once\. Got 503/],
]

vi.setConfig({ maxConcurrency: 8, testTimeout: 120_000 }) // They often wait, and are many.

describe.concurrent('an endpoint with one fault', () => {
  for (const [language, fault, fails, says] of FAULTS) {
    it(`${language}, ${fault}`, needs(...programsOf(language)), async ({ onTestFinished }) => {
      const bad = Object.values(await findFaults(await startOther(language, fault, onTestFinished)))
      expect(
        bad
          .filter(({ result, sentence }) => result === 'fail' && !sentence.startsWith('Not sent'))
          .map(({ id }) => id)
          .sort(),
      ).toEqual(fails.toSorted())
      expect([...new Set(bad.map(({ sentence }) => sentence))].join('\n')).toMatch(says)
    })
  }

  it.for(['verifies-nothing', '500-on-forged', '302-on-forged', '200-with-error'])(
    'python3, %s',
    needs('python3'),
    async (fault, { onTestFinished }) => {
      const bad = await findFaults(await startOther('python3', fault, onTestFinished))
      const ids = Object.keys(bad)
      expect(ids).toEqual(expect.arrayContaining(['signature-missing', 'signature-forged', 'body-changed']))
      expect(ids.filter((id) => !/^(signature|body|forged|unsigned)-/.test(id))).toEqual([])
      expect(bad['signature-forged']?.sentence).toContain('Each message with a forged signature gets the same')
    },
  )
})

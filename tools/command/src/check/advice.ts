/** The likely causes when an endpoint answers a case wrongly, and what to do about them. */

const PARSE = "Catch the parser's error, and answer 400."
const MALFORMED = 'Check that the header consists of 40 hex digits before you do anything else with it.'
const DOUBLES = 'Languages whose numbers are doubles write'

const ADVICE: readonly (readonly [ids: RegExp, advice: string])[] = [
  [/^signature-missing/, 'Refuse a request without the header.'],
  [/^signature-empty$/, 'Refuse an empty header.'],
  [/^signature-(malformed|not-hex)/, MALFORMED],
  [/^signature-not-ascii/, `${MALFORMED} In Python, hmac.compare_digest raises an error for such text.`],
  [
    /^signature-(start|truncated|last-digit|first-digit|longer)/,
    'The endpoint compares only part of the signature: compare all 40 digits.',
  ],
  [/^signature-sha256/, 'Accept only the HMAC-SHA1 in lowercase hex.'],
  [/^signature-without-secret/, 'Anyone can compute this signature: use the secret as the key of the HMAC.'],
  [/^signature-empty-secret/, 'Anyone can compute this signature: refuse every request while no secret is configured.'],
  [/^signature-of-nothing/, 'The endpoint verifies an empty body: read the body before anything else consumes it.'],
  [
    /^signature-(upper-case|with-tail|prefixed|base64)/,
    'Accept only lowercase hex digits, as the specification requires.',
  ],
  [/^signature-forged$/, 'Verify the signature.'],
  [/^signature-forged-types/, 'Verify the signature before you read the type.'],
  [/^signature-of-other-body/, "Compute the digest of each request's own body."],
  [/^body-changed/, 'Compute the digest of the whole body.'],
  [/^body-extended/, 'Compute the digest of the bytes that arrived, without trimming or parsing them.'],
  [/^body-end-changed/, 'Compute the digest of the whole body, not of its first part.'],
  [/^(forged-not-json|unsigned-empty-body)/, 'Verify the signature before you parse the body.'],
  [/^forged-put/, 'The sender uses only POST: refuse other methods, or verify their requests as well.'],

  [/^type-/, 'The sender sends all seven types: answer 2xx even to those that you do not use.'],
  [/^context-object/, 'Every message except a delete has a context: accept any context.'],
  [/^unknown-fields/, 'Senders add fields over time: ignore unknown ones.'],
  [/^anonymous-id/, 'A visitor who has not logged in has no userId: use the anonymousId.'],
  [/^user-id-null/, 'Senders write null for the userId of a visitor who has not logged in: treat null as absent.'],
  [/^audience-traits/, 'Audiences arrive as boolean traits: accept booleans as well as text and numbers.'],
  [
    /^old-timestamp/,
    'A message is retried for four hours with the same bytes: do not refuse messages because of their age.',
  ],

  [/^bytes-float/, 'JavaScript, Go and PHP write 39.0 as 39.'],
  [/^bytes-decimal/, `${DOUBLES} 19.90 as 19.9.`],
  [/^bytes-exponent/, 'Serialisers write 1e3 as 1000 or 1000.0.'],
  [/^bytes-big-integer/, `${DOUBLES} 9007199254740993 as 9007199254740992.`],
  [
    /^bytes-non-ascii/,
    'Python and PHP write é as \\u00e9, and a body that is decoded as Latin-1 has two characters in place of é.',
  ],
  [/^bytes-escaped-non-ascii/, 'JavaScript and others write \\u00e9 as é.'],
  [
    /^bytes-line-separator/,
    'Go, Rails, PHP and Python escape U+2028; other languages write the character instead of the escape.',
  ],
  [/^bytes-slash/, 'PHP writes / as \\/.'],
  [/^bytes-escaped-slash/, 'All languages but PHP write \\/ as /.'],
  [/^bytes-html/, 'Go and Rails write < as \\u003c.'],
  [/^bytes-escapes/, 'A serialiser always uses the same escape for a character.'],
  [/^bytes-key-order/, 'Go sorts keys.'],
  [/^bytes-index-keys/, 'JavaScript moves such keys to the front and sorts them.'],
  [/^bytes-empty-object/, 'PHP decodes {} into an array, and writes [].'],
  [/^bytes-null/, 'Some serialisers omit fields that are null.'],
  [/^bytes-spaces/, 'A serialiser writes no white space, or different white space.'],
  [/^bytes-indented/, 'A body that is read as text may lose the CR of its line breaks.'],
  [
    /^bytes-(line-break-at-end|space-at-start)/,
    'Trimming the body, for example with strip() or trim(), removes this white space.',
  ],

  [
    /^retry-identical/,
    'A sender that did not get the answer sends the message again: give the second copy the same answer as the first.',
  ],
  [
    /^large-body/,
    'Read the whole body before you verify it, and raise the size limits of the framework and of proxies.',
  ],
  [/^body-in-pieces/, 'Read as many bytes as Content-Length says, not only those of the first packet.'],
  [
    /^header-names/,
    'Header names are case-insensitive (RFC 9110, section 5.1), and proxies change their case: ignore the case.',
  ],
  [/^nul/, 'PostgreSQL refuses U+0000 in text and jsonb: remove the character before you store the message.'],
  [/^keep-alive/, 'Read each body to its end, even when you refuse it, or answer with Connection: close.'],
  [/^twenty-at-once/, 'A sender posts many messages at a time: answer them concurrently, or answer each one quickly.'],

  [/^key-/, 'Compare the whole value of the header, in constant time, and refuse a request without it.'],
  [
    /^batch/,
    "The sender posts batches if its user turns batching on: accept batches, or leave batching off in the sender's settings.",
  ],
  [/^mapped-body/, 'The user of the sender chooses the body: answer 2xx or 4xx. A 5xx is retried.'],

  [
    /^lone-surrogate/,
    "JavaScript's JSON.stringify can write half of a surrogate pair: replace it before you encode or store the text.",
  ],
  [/^signed-(not-json|cut-json|empty-body)/, PARSE],
  [
    /^signed-(null|list|empty-object)/,
    'Check the type of the parsed value before you read its fields, and answer 400.',
  ],
  [/^unknown-type/, 'Answer 2xx or 4xx: a 5xx is retried.'],
  [/^byte-order-mark/, `A parser may refuse a byte order mark. ${PARSE}`],
]

export function adviceOf(id: string): string {
  return ADVICE.find(([ids]) => ids.test(id))?.[1] ?? ''
}

/** The cases of `hookline check URL`, in tables: what is sent, which answers are right, and what is probably wrong otherwise. */

import { createHash, createHmac } from 'node:crypto'
import { sign } from '../../message/signature.ts'
import type { CaseFacts } from '../report.ts'
import {
  arrange,
  type Base,
  type CaseRequest,
  CONTEXT,
  common,
  extras,
  type Form,
  type Members,
  newId,
  now,
  object,
  plainText,
  quote,
  screenContext,
  signed,
  texts,
  write,
} from './message.ts'

const EXPECTS = {
  taken: 'a 2xx within 5 s',
  refused: 'a 4xx',
  survived: 'a 2xx or a 4xx',
  answered: 'any answer within 5 s',
  not_taken: 'anything but a 2xx',
} as const

export type Expectation = keyof typeof EXPECTS

export interface EndpointCase extends CaseFacts {
  readonly expectation: Expectation
  readonly advice: string
  /** Whether it is refused where the bytes are changed before they are verified. */
  readonly isExact?: boolean
  /** How several requests are sent. Default: one after another, each on a connection of its own. */
  readonly how?: 'kept_alive' | 'at_once' | 'in_pieces'
  requests(base: Base): readonly CaseRequest[]
}

interface Defaults
  extends Pick<EndpointCase, 'expectation' | 'section'>,
    Partial<Pick<EndpointCase, 'severity' | 'isExact'>> {
  readonly starts?: string
}

type Row<Content> = readonly [
  id: string,
  sends: string,
  advice: string,
  content: Content,
  more?: Partial<Pick<EndpointCase, 'expectation' | 'section' | 'severity' | 'how'>>,
]

function table<Content>(
  { starts = '', ...defaults }: Defaults,
  toRequests: (content: Content, base: Base, id: string) => CaseRequest | readonly CaseRequest[],
  rows: readonly Row<Content>[],
): readonly EndpointCase[] {
  return rows.map(([id, sends, advice, content, more]) => {
    const facts = { severity: 'fail', ...defaults, ...more } as const
    const requests: EndpointCase['requests'] = (base) => [toRequests(content, base, id)].flat()
    return { id, sends: starts + sends, advice, ...facts, expects: EXPECTS[facts.expectation], requests }
  })
}

/** The text of a message, or of what is none. */
type Text = (form: Form, id: string) => string

const ofText = (text: Text, base: Base, id: string): CaseRequest => signed(base, text(base.form, id))

type Requests = (base: Base, id: string) => CaseRequest | readonly CaseRequest[]

const ofRequests = (requests: Requests, base: Base, id: string) => requests(base, id)

const WARN = { severity: 'warn' } as const

/** The signature to send with a plain message; null for none. */
type Forge = (right: string, text: string, secret: string) => string | null

function ofForged(forge: Forge, base: Base, id: string): CaseRequest {
  const text = plainText(base.form, id)
  return signed(base, text, forge(sign(text, base.secret), text, base.secret))
}

const ANOTHER = 'another secret of hookline check'
const PARTIAL = 'It compares a part of the signature only: compare all 40 digits.'
const CRASH = 'Check that the header has 40 hex digits before anything else is done with it.'
const CRASH_OF_PYTHON = `${CRASH} In Python, hmac.compare_digest raises an error for such text.`
const KEYED = 'Anybody can compute it: key the digest with the secret.'
const CONFIGURED = 'Anybody can compute it: refuse everything while no secret is configured.'
const UNREAD = 'It verifies an empty body: read the body before anything else consumes it.'
const DIGEST = 'Compare the lowercase hex HMAC-SHA1 only.'
const PARSED = 'Verify the signature before the body is parsed.'
const HEX = 'The specification has lowercase hex digits and nothing else.'
const TOLERANT = { ...WARN, section: 'Authentication 2' } as const
const REFUSED = { expectation: 'refused', section: 'Authentication 3' } as const

/** What must be refused, because it was not signed with the secret. */
const FORGED: readonly EndpointCase[] = [
  ...table({ ...REFUSED, starts: 'a message ' }, ofForged, [
    ['signature-missing', 'without X-Signature', 'Refuse a request without the header.', () => null],
    ['signature-empty', 'with an empty X-Signature', 'Refuse an empty header.', () => ''],
    ['signature-malformed', 'with a signature that is a word', CRASH, () => 'hookline-check'],
    ['signature-not-hex', 'with a signature of 40 characters that are not hex digits', CRASH, () => 'z'.repeat(40)],
    [
      'signature-not-ascii',
      'with a signature of 40 characters that are not ASCII',
      CRASH_OF_PYTHON,
      () => 'é'.repeat(40),
      WARN,
    ],
    ['signature-start', 'with the first 8 digits of the right signature', PARTIAL, (right) => right.slice(0, 8)],
    ['signature-truncated', 'with the right signature without its last digit', PARTIAL, (right) => right.slice(0, -1)],
    ['signature-last-digit', 'with the right signature with another last digit', PARTIAL, (right) => flip(right, 39)],
    ['signature-first-digit', 'with the right signature with another first digit', PARTIAL, (right) => flip(right, 0)],
    ['signature-longer', 'with the right signature and two hex digits more', PARTIAL, (right) => `${right}00`],
    [
      'signature-sha256',
      'with an HMAC-SHA256 in place of HMAC-SHA1',
      DIGEST,
      (_, text, secret) => createHmac('sha256', secret).update(text).digest('hex'),
    ],
    [
      'signature-without-secret',
      'with the SHA-1 of the body, without the secret',
      KEYED,
      (_, text) => createHash('sha1').update(text).digest('hex'),
    ],
    ['signature-empty-secret', 'that is signed with an empty secret', CONFIGURED, (_, text) => sha1('', text)],
    [
      'signature-of-nothing',
      'with the right signature of an empty body',
      UNREAD,
      (_, _text, secret) => sign('', secret),
    ],
    ['signature-upper-case', 'with the right signature in upper case', HEX, (right) => right.toUpperCase(), TOLERANT],
    ['signature-with-tail', 'with the right signature and text behind it', HEX, (right) => `${right}zz`, TOLERANT],
    ['signature-prefixed', 'with the right signature behind sha1=', HEX, (right) => `sha1=${right}`, TOLERANT],
    [
      'signature-base64',
      'with the right signature as base64',
      HEX,
      (right) => Buffer.from(right, 'hex').toString('base64'),
      TOLERANT,
    ],
  ]),
  ...table(REFUSED, ofRequests, [
    [
      'signature-forged',
      'a message that is signed with another secret',
      'Verify the signature.',
      (base, id) => {
        const text = plainText(base.form, id)
        return { ...signed(base, text, sign(text, ANOTHER)), secret: sign(text, base.secret) }
      },
    ],
    [
      'signature-forged-types',
      'a message of each type that is signed with another secret',
      'Verify the signature before the type is looked at, whatever the type is.',
      (base) => TYPES.flatMap((type) => type.requests(base)).map(({ body }) => signed(base, body, sign(body, ANOTHER))),
    ],
    [
      'signature-of-other-body',
      'a message, and then another one with the signature of the first',
      'Compute the digest of the body of each request.',
      (base, id) => {
        const [first, second] = [plainText(base.form, id), plainText(base.form, id)]
        return [{ ...signed(base, first), isOpen: true }, signed(base, second, sign(first, base.secret))]
      },
    ],
    [
      'body-changed',
      'a message that was changed after it was signed',
      'Compute the digest of the whole body.',
      (base, id) => changedAfter(base, plainText(base.form, id), (text) => text.replace(id, 'another')),
    ],
    [
      'body-extended',
      'a message with a line break at its end that was not signed',
      'Compute the digest of the bytes that arrived, without trimming or parsing them.',
      (base, id) => changedAfter(base, plainText(base.form, id), (text) => `${text}\n`),
    ],
    [
      'body-end-changed',
      'a message of 100 KB whose last value was changed after it was signed',
      'Compute the digest of the whole body, not of its first part.',
      (base, id) => {
        const text = plainText(base.form, id, { zz: quote(`${'x'.repeat(100_000)}1`) })
        return changedAfter(base, text, (text) => text.replace(/1"}$/, '2"}'))
      },
    ],
    [
      'forged-not-json',
      'a body that is not JSON, with a forged signature',
      PARSED,
      (base) => signed(base, '{"type":"track', sign('', ANOTHER)),
    ],
    ['unsigned-empty-body', 'an empty body without X-Signature', PARSED, (base) => signed(base, '', null)],
  ]),
  ...table({ expectation: 'not_taken', section: 'Outbound delivery: Method', ...WARN }, ofRequests, [
    [
      'forged-put',
      'a PUT with a forged signature',
      'The sender uses POST only: refuse other methods, or verify them as well.',
      (base, id) => ({ ...signed(base, plainText(base.form, id), sign('', ANOTHER)), method: 'PUT' }),
    ],
  ]),
]

function sha1(key: string, text: string): string {
  return createHmac('sha1', key).update(text).digest('hex')
}

function flip(signature: string, at: number): string {
  return signature.slice(0, at) + (signature[at] === '0' ? '1' : '0') + signature.slice(at + 1)
}

/** A text with the signature that it had before it was changed. */
function changedAfter(base: Base, text: string, change: (text: string) => string): CaseRequest {
  return signed(base, change(text), sign(text, base.secret))
}

const FIELDS: Readonly<Record<string, (id: string) => Members>> = {
  page: (id) => ({
    properties: texts({
      path: id,
      referrer: 'urn:hookline-check:referrer',
      title: 'Hookline Check',
      url: 'urn:hookline-check:page',
    }),
  }),
  screen: (id) => ({ context: screenContext(id), name: quote('Hookline Check') }),
  identify: (id) => ({ traits: object({ check: quote(id), logins: '5' }) }),
  track: (id) => ({ event: quote('Hookline Check'), properties: object({ check: quote(id), total: '12' }) }),
  // Its new id is there twice: under its own name, and as the `userId` that every message has.
  alias: () => {
    const userId = quote(newId())
    return { 'Previous ID': quote(newId()), 'User ID': userId, userId }
  },
  group: (id) => ({ groupId: quote(newId()), traits: object({ check: quote(id), 'Employee Count': '12' }) }),
  delete: () => ({ version: undefined, context: undefined }),
}

const TYPES: readonly EndpointCase[] = Object.entries(FIELDS).flatMap(([type, fields]) =>
  table({ expectation: 'taken', section: `Delivered message fields: ${type}` }, ofText, [
    [
      `type-${type}`,
      `a message of the type ${type}`,
      'The sender sends each of the seven types: answer 2xx to one that is of no use to you.',
      (form, id) => arrange(form, object({ ...common(form, type), ...fields(id) })),
    ],
  ]),
)

const [FIRST, ...MESSAGES] = table({ expectation: 'taken', section: 'Delivered message fields' }, ofText, [
  [
    'plain-message',
    'a signed message',
    'Every other case changes one thing in a message like this.',
    plainText,
    { section: 'Authentication 3' },
  ],
  [
    'context-object',
    'a message with a context object',
    'Every message but a delete has a context: take it, whatever it holds.',
    (form, id) => plainText(form, id, { context: CONTEXT }),
    { section: 'What the service does 6' },
  ],
  [
    'unknown-fields',
    'a message with fields that the specification does not show: messageId, integrations, receivedAt and others',
    'Senders add fields, and new ones over time: ignore those that you do not know.',
    (form, id) => plainText(form, id, { ...extras(), hookline_check: '[1,true,null]' }),
  ],
  [
    'anonymous-id',
    'a message with an anonymousId and without a userId',
    'A visitor who has not logged in has no userId: take the anonymousId in its place.',
    (form, id) => plainText(form, id, { anonymousId: quote(newId()), userId: undefined }),
    { section: 'Delivered message fields: userId' },
  ],
  [
    'user-id-null',
    'a message with an anonymousId and the userId null',
    'Some senders write null for the userId of a visitor who has not logged in: treat it as absent.',
    (form, id) => plainText(form, id, { anonymousId: quote(newId()), userId: 'null' }),
    { ...WARN, section: 'Delivered message fields: userId' },
  ],
  [
    'audience-traits',
    'an identify with the boolean traits of audiences, true and false',
    'Audiences arrive as boolean traits: take them beside text and numbers.',
    (form, id) => {
      const traits = object({ check: quote(id), hookline_check_joined: 'true', hookline_check_left: 'false' })
      return write({ ...form, type: 'identify' }, traits)
    },
    { section: 'Audience and computed-trait delivery 2' },
  ],
  [
    'old-timestamp',
    'a message whose timestamp is four hours old',
    'A message is retried for four hours with the same bytes: do not refuse one for its age.',
    (form, id) => plainText(form, id, { timestamp: now(4 * 60 * 60_000) }),
    { section: 'Limits: Retry window for 5xx responses' },
  ],
]) as readonly [EndpointCase, ...EndpointCase[]]

/** The first of all cases: what is sent in it is found by `plain.ts`. */
export const PLAIN: EndpointCase = FIRST

const EXACT = { expectation: 'taken', section: 'Authentication 2', isExact: true, starts: 'a message ' } as const
const DOUBLES = 'Where numbers are doubles, it becomes'
const TRIMMED = 'A body that is trimmed, as by strip() or trim(), has lost it.'

/** How a message is written: what is signed are the bytes, whatever a serialiser would make of them. */
const BYTES: readonly EndpointCase[] = [
  // A message with these fields among its properties.
  ...table(EXACT, (fields: string, base, id) => signed(base, write(base.form, `{"check":${quote(id)},${fields}}`)), [
    ['bytes-float', 'with the number 39.0', 'JavaScript, Go and PHP write it as 39.', '"value":39.0'],
    ['bytes-decimal', 'with the number 19.90', `${DOUBLES} 19.9.`, '"value":19.90'],
    ['bytes-exponent', 'with the number 1e3', 'It becomes 1000 or 1000.0.', '"value":1e3'],
    [
      'bytes-big-integer',
      'with the number 9007199254740993',
      `${DOUBLES} 9007199254740992.`,
      '"value":9007199254740993',
    ],
    [
      'bytes-non-ascii',
      'with letters outside ASCII, as UTF-8',
      'Python and PHP write é as \\u00e9, and a body that is decoded as Latin-1 has two characters for it.',
      '"value":"Zoë Ångström, e\u0301, 東京, 😀"',
    ],
    [
      'bytes-escaped-non-ascii',
      'with letters outside ASCII, as \\u escapes',
      'JavaScript and others write \\u00e9 as é.',
      '"value":"Zo\\u00eb \\u6771\\u4EAC \\ud83d\\ude00"',
    ],
    [
      'bytes-line-separator',
      'with U+2028 and U+2029, as UTF-8 and as \\u escapes',
      'Go, Rails, PHP and Python escape U+2028; others write the escape as the character.',
      '"one":"\u2028\u2029","two":"\\u2028\\u2029"',
    ],
    ['bytes-slash', 'with slashes', 'PHP writes / as \\/.', '"value":"https://hookline-check.example/a/b"'],
    [
      'bytes-escaped-slash',
      'with slashes that are escaped: \\/',
      'All but PHP write \\/ as /.',
      '"value":"https:\\/\\/hookline-check.example\\/a\\/b"',
    ],
    [
      'bytes-html',
      "with the characters < > & ' +",
      'Go and Rails write < as \\u003c.',
      `"value":"<b>1 & 2</b> 'a'+%41=b"`,
    ],
    [
      'bytes-escapes',
      'with quotation marks, backslashes and control characters, escaped in several ways',
      'A serialiser has one escape for each character.',
      '"one":"say \\"a\\\\b\\" \\b\\f\\n\\r\\t","two":"\\u0022\\u005c\\u000a\\u0041"',
    ],
    ['bytes-key-order', 'with keys that are not sorted', 'Go sorts keys.', '"zebra":"a","apple":"b"'],
    [
      'bytes-index-keys',
      'with keys that are whole numbers, and not sorted',
      'JavaScript moves them to the front and sorts them.',
      '"item":"a","10":"b","9":"c"',
    ],
    ['bytes-empty-object', 'with an empty object', 'PHP decodes {} into an array, and writes [].', '"value":{}'],
    ['bytes-null', 'with the value null', 'Some serialisers leave out what is null.', '"value":null'],
  ]),
  // A message that is changed as a text.
  ...table(
    EXACT,
    (change: (text: string, form: Form) => string, base, id) => {
      const plain = write({ ...base.form, isSpaced: false }, texts({ check: id, other: 'value' }))
      return signed(base, change(plain, base.form))
    },
    [
      [
        'bytes-spaces',
        'with white space between its values',
        'A serialiser writes none, or another.',
        (text) => arrange({ isSpaced: true }, text).replaceAll(', ', ' ,  ').replaceAll(': ', ' :\t'),
      ],
      [
        'bytes-indented',
        'with line breaks and indentation, LF and CRLF',
        'A body that is read as text may have lost the CR of a line break.',
        (text) => JSON.stringify(JSON.parse(text), undefined, 2).replace(/\n(?= *")/g, '\r\n'),
      ],
      ['bytes-line-break-at-end', 'with a line break at its end', TRIMMED, (text, form) => `${arrange(form, text)}\n`],
      ['bytes-space-at-start', 'with white space at its start', TRIMMED, (text, form) => ` \n${arrange(form, text)}`],
    ],
  ),
]

const BODY = 'Outbound delivery: Request body'
const RESPONSE_TIME = 'Limits: Response time allowed per request'

const ANSWER_IN_TIME = table({ expectation: 'answered', section: RESPONSE_TIME }, ofText, [
  ['answer-in-time', 'another signed message', '', plainText],
])

const TRAFFIC = table({ expectation: 'taken', section: BODY }, ofRequests, [
  [
    'retry-identical',
    'the same message twice, as a retry is',
    'A sender that lost the first answer sends the message again: answer a message that you know as you did before.',
    (base, id) => Array(2).fill(signed(base, plainText(base.form, id))),
    { section: 'Errors: No response within 5 seconds' },
  ],
  [
    'large-body',
    'a message of 400 KB',
    'Read the body to its end before it is verified, and raise its limit, in the framework and in proxies before it.',
    (base, id) => signed(base, write(base.form, texts({ check: id, filler: 'x'.repeat(400_000) }))),
    { section: RESPONSE_TIME },
  ],
  [
    'body-in-pieces',
    'a message whose bytes arrive in two pieces, 100 ms apart',
    'Read as many bytes as Content-Length says, not only those of the first packet.',
    (base, id) => signed(base, plainText(base.form, id)),
    { how: 'in_pieces' },
  ],
  [
    'header-names-in-lower-case',
    'a message with the names of its headers in lower case',
    'Names of headers have no case (RFC 9110, section 5.1), and proxies change it: compare them without.',
    (base, id) => {
      const { body, headers } = signed(base, plainText(base.form, id))
      const lower = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
      return { body, headers: Object.fromEntries(lower) }
    },
    { section: 'Outbound delivery: Request header X-Signature' },
  ],
  [
    'nul',
    'a message with \\u0000 in a text',
    'PostgreSQL refuses that character in text and in jsonb: remove it before the message is stored.',
    (base) => signed(base, write(base.form, '{"check":"nul","value":"a\\u0000b"}')),
    WARN,
  ],
])

const PARSE = 'Catch the error of the parser, and answer 400.'
const CHECK = 'Check what the parser returned before a field of it is read, and answer 400.'
const SURROGATE = 'JSON.stringify of JavaScript writes it: replace it before the text is encoded or stored.'

/** Signed bodies that are no messages, or hardly. Refusing one is right, and so is accepting it; failing is not. */
const BODIES = table<Text>({ expectation: 'survived', section: BODY, ...WARN }, ofText, [
  [
    'lone-surrogate',
    'a message with half of a surrogate pair, \\ud800',
    SURROGATE,
    (form) => write(form, '{"check":"lone-surrogate","value":"a\\ud800b"}'),
  ],
  ['signed-not-json', 'a signed body that is not JSON', PARSE, () => `hookline-check ${newId()}`],
  [
    'signed-cut-json',
    'a signed body that ends in the middle of a message',
    PARSE,
    (form, id) => plainText(form, id).slice(0, -20),
  ],
  ['signed-empty-body', 'an empty body that is signed', PARSE, () => ''],
  ['signed-null', 'the signed body null', CHECK, () => 'null'],
  ['signed-list', 'a signed list of messages', CHECK, (form, id) => `[${plainText(form, id)}]`],
  ['signed-empty-object', 'the signed body {}', CHECK, () => '{}'],
  [
    'unknown-type',
    'a message of a type that does not exist',
    'Answer 2xx or 4xx: a 5xx brings it back.',
    (form, id) => plainText(form, id, { type: quote('hookline-check') }),
  ],
  [
    'byte-order-mark',
    'a message with a byte order mark before it',
    `A parser may refuse it. ${PARSE}`,
    (form, id) => `\ufeff${plainText(form, id)}`,
  ],
])

/** What is wrong with connections only. Last: an endpoint may have had enough of forged messages by then. */
const CONNECTIONS = table({ expectation: 'taken', section: RESPONSE_TIME, ...WARN }, ofRequests, [
  [
    'keep-alive',
    'four messages over one connection, the second of them forged',
    'Read each body to its end also when it is refused, or close the connection and say so: Connection: close.',
    (base, id) => {
      const plain = (): CaseRequest => signed(base, plainText(base.form, id))
      const forged = signed(base, plainText(base.form, id), '0'.repeat(40))
      return [plain(), { ...forged, isOpen: true }, plain(), plain()]
    },
    { how: 'kept_alive', section: 'Outbound delivery: Method' },
  ],
  [
    'twenty-at-once',
    '20 messages at once',
    'A sender posts many messages at a time: answer them side by side, or each of them soon.',
    (base, id) => Array.from({ length: 20 }, () => signed(base, plainText(base.form, id))),
    { how: 'at_once' },
  ],
])

/** Of https only. It is found before a request is sent. */
export const [CERTIFICATE] = table({ expectation: 'answered', section: 'Authentication 4' }, ofRequests, [
  ['certificate', 'nothing: a connection with TLS is opened', '', () => []],
]).map((found) => ({ ...found, expects: 'a certificate of an authority that is trusted' })) as [EndpointCase]

/** What matters most: a slow endpoint gets but a few cases in a minute. The other forged messages come late, because some ban their sender. */
const isEarly = ({ id }: EndpointCase): boolean =>
  ['signature-missing', 'signature-forged', 'body-changed'].includes(id)

export const ENDPOINT_CASES: readonly EndpointCase[] = [
  CERTIFICATE,
  PLAIN,
  ...ANSWER_IN_TIME,
  ...FORGED.filter(isEarly),
  ...TYPES,
  ...MESSAGES,
  ...BYTES,
  ...TRAFFIC,
  ...FORGED.filter((each) => !isEarly(each)),
  ...BODIES,
  ...CONNECTIONS,
]

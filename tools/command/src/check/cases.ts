/** The cases of `hookline check URL`: tables of requests and their right answers. */

import { createHash } from 'node:crypto'
import { sign } from 'hookline'
import type { RequestForm } from '../arguments.ts'
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
import { hmac, toBase64 } from './mistakes.ts'

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
  /** Whether the case is about exact bytes. Endpoints that change the bytes before verifying them refuse its request. */
  readonly isExact?: boolean
  /** The way to send several requests. Default: one after another, each on its own connection. */
  readonly how?: 'kept_alive' | 'at_once'
  requests(base: Base): readonly CaseRequest[]
}

type Facts = Partial<Pick<EndpointCase, 'expectation' | 'section' | 'severity' | 'isExact' | 'how'>>

type Row<Content> = readonly [id: string, sends: string, content: Content, more?: Facts]

function table<Content>(
  { starts = '', ...defaults }: Facts & Pick<EndpointCase, 'expectation' | 'section'> & { readonly starts?: string },
  toRequests: (content: Content, base: Base, id: string) => CaseRequest | readonly CaseRequest[],
  rows: readonly Row<Content>[],
): readonly EndpointCase[] {
  return rows.map(([id, sends, content, more]) => {
    const facts = { severity: 'fail', ...defaults, ...more } as const
    const requests: EndpointCase['requests'] = (base) => [toRequests(content, base, id)].flat()
    return { id, sends: starts + sends, ...facts, expects: EXPECTS[facts.expectation], requests }
  })
}

/** Returns the text of the body, which need not be a message. */
type Text = (form: Form, id: string) => string

const ofText = (text: Text, base: Base, id: string): CaseRequest => signed(base, text(base.form, id))

type Requests = (base: Base, id: string) => CaseRequest | readonly CaseRequest[]

const ofRequests = (requests: Requests, base: Base, id: string) => requests(base, id)

const WARN = { severity: 'warn' } as const

/** Returns the signature to send with a plain message; null to send none. */
type Forge = (right: string, text: string, secret: string) => string | null

function ofForged(forge: Forge, base: Base, id: string): CaseRequest {
  const text = plainText(base.form, id)
  return signed(base, text, forge(sign(text, base.secret), text, base.secret))
}

/** Changes a plain message after it was signed. */
type Change = (text: string, id: string) => string

function ofChanged(change: Change, base: Base, id: string): CaseRequest {
  const text = plainText(base.form, id, { zz: quote(`${'x'.repeat(id === 'body-end-changed' ? 100_000 : 0)}1`) })
  return signed(base, change(text, id), sign(text, base.secret))
}

const ANOTHER = 'another secret of hookline check'
const TOLERANT = { ...WARN, section: 'Authentication 2' } as const
const REFUSED = { expectation: 'refused', section: 'Authentication 3' } as const

/** Cases that an endpoint must refuse, because the signature is missing, wrong or in another form. */
const FORGED: readonly EndpointCase[] = [
  ...table<Forge>({ ...REFUSED, starts: 'a message ' }, ofForged, [
    ['signature-missing', 'without X-Signature', () => null],
    ['signature-empty', 'with an empty X-Signature', () => ''],
    ['signature-malformed', 'with a signature that is a word', () => 'hookline-check'],
    ['signature-not-hex', 'with a signature of 40 characters that are not hex digits', () => 'z'.repeat(40)],
    ['signature-not-ascii', 'with a signature of 40 characters that are not ASCII', () => 'é'.repeat(40), WARN],
    ['signature-start', 'with the first 8 digits of the right signature', (right) => right.slice(0, 8)],
    ['signature-truncated', 'with the right signature without its last digit', (right) => right.slice(0, -1)],
    ['signature-last-digit', 'with the right signature, but another last digit', (right) => flip(right, 39)],
    ['signature-first-digit', 'with the right signature, but another first digit', (right) => flip(right, 0)],
    ['signature-longer', 'with the right signature and two more hex digits', (right) => `${right}00`],
    [
      'signature-sha256',
      'with an HMAC-SHA256 in place of HMAC-SHA1',
      (_, text, secret) => hmac('sha256', secret, text),
    ],
    [
      'signature-without-secret',
      'with the SHA-1 of the body, without the secret',
      (_, text) => createHash('sha1').update(text).digest('hex'),
    ],
    ['signature-empty-secret', 'that is signed with an empty secret', (_, text) => hmac('sha1', '', text)],
    ['signature-of-nothing', 'with the right signature of an empty body', (_, _text, secret) => sign('', secret)],
    ['signature-upper-case', 'with the right signature in upper case', (right) => right.toUpperCase(), TOLERANT],
    ['signature-with-tail', 'with the right signature and text after it', (right) => `${right}zz`, TOLERANT],
    ['signature-prefixed', 'with sha1= before the right signature', (right) => `sha1=${right}`, TOLERANT],
    ['signature-base64', 'with the right signature as base64', toBase64, TOLERANT],
    ['signature-forged', 'that is signed with another secret', (_, text) => sign(text, ANOTHER)],
  ]),
  ...table<Requests>(REFUSED, ofRequests, [
    [
      'signature-forged-types',
      'a message of each type that is signed with another secret',
      (base) => TYPES.flatMap((type) => type.requests(base)).map(({ body }) => signed(base, body, sign(body, ANOTHER))),
    ],
    [
      'signature-of-other-body',
      'a message, and then another one with the signature of the first',
      (base, id) => {
        const [first, second] = [plainText(base.form, id), plainText(base.form, id)]
        return [{ ...signed(base, first), isOpen: true }, signed(base, second, sign(first, base.secret))]
      },
    ],
  ]),
  ...table<Change>(REFUSED, ofChanged, [
    ['body-changed', 'a message that was changed after it was signed', (text, id) => text.replace(id, 'another')],
    ['body-extended', 'a message to which a line break was added after it was signed', (text) => `${text}\n`],
    [
      'body-end-changed',
      'a message of 100 KB whose last value was changed after it was signed',
      (text) => text.replace(/1"}$/, '2"}'),
    ],
  ]),
  ...table<Requests>(REFUSED, ofRequests, [
    [
      'forged-not-json',
      'a body that is not JSON, with a forged signature',
      (base) => signed(base, '{"type":"track', sign('', ANOTHER)),
    ],
    ['unsigned-empty-body', 'an empty body without X-Signature', (base) => signed(base, '', null)],
    [
      'forged-put',
      'a PUT with a forged signature',
      (base, id) => ({ ...signed(base, plainText(base.form, id), sign('', ANOTHER)), method: 'PUT' }),
      { expectation: 'not_taken', section: 'Outbound delivery: Method', ...WARN },
    ],
  ]),
]

function flip(signature: string, at: number): string {
  return signature.slice(0, at) + (signature[at] === '0' ? '1' : '0') + signature.slice(at + 1)
}

const FIELDS: Readonly<Record<string, (id: string, form: Form) => Members>> = {
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
  // The new id occurs twice: in its own field, and as the `userId`, which every message has.
  alias: (_id, { fields }) => {
    const [previousId, userId] = [quote(newId()), quote(newId())]
    return fields ? { previousId, userId } : { 'Previous ID': previousId, 'User ID': userId, userId }
  },
  group: (id) => ({ groupId: quote(newId()), traits: object({ check: quote(id), 'Employee Count': '12' }) }),
  delete: () => ({ version: undefined, context: undefined }),
}

const TYPES: readonly EndpointCase[] = Object.entries(FIELDS).flatMap(([type, fields]) =>
  table<Text>({ expectation: 'taken', section: `Delivered message fields: ${type}` }, ofText, [
    [
      `type-${type}`,
      `a message of the type ${type}`,
      (form, id) => arrange(form, object({ ...common(form, type), ...fields(id, form) })),
    ],
  ]),
)

/** Returns the members to change in a plain message. */
type Changes = () => Members

const ofChanges = (changes: Changes, base: Base, id: string) => signed(base, plainText(base.form, id, changes()))

const USER_ID = { section: 'Delivered message fields: userId' } as const

const [FIRST, ...MESSAGES] = [
  ...table<Changes>({ expectation: 'taken', section: 'Delivered message fields' }, ofChanges, [
    ['plain-message', 'a signed message', () => ({}), { section: 'Authentication 3' }],
    [
      'context-object',
      'a message with a context object',
      () => ({ context: CONTEXT }),
      { section: 'What the service does 6' },
    ],
    [
      'unknown-fields',
      'a message with fields that the specification does not show: messageId, integrations, receivedAt and others',
      () => ({ ...extras(), hookline_check: '[1,true,null]' }),
    ],
    [
      'anonymous-id',
      'a message with an anonymousId, but no userId',
      () => ({ anonymousId: quote(newId()), userId: undefined }),
      USER_ID,
    ],
    [
      'user-id-null',
      'a message with an anonymousId, whose userId is null',
      () => ({ anonymousId: quote(newId()), userId: 'null' }),
      { ...WARN, ...USER_ID },
    ],
  ]),
  ...table<Text>({ expectation: 'taken', section: 'Audience and computed-trait delivery 2' }, ofText, [
    [
      'audience-traits',
      'an identify message with the boolean traits of audiences, true and false',
      (form, id) => {
        const traits = object({ check: quote(id), hookline_check_joined: 'true', hookline_check_left: 'false' })
        return write({ ...form, type: 'identify' }, traits)
      },
    ],
  ]),
  ...table<Changes>({ expectation: 'taken', section: 'Limits: Retry window for 5xx responses' }, ofChanges, [
    ['old-timestamp', 'a message whose timestamp is four hours old', () => ({ timestamp: now(4 * 60 * 60_000) })],
  ]),
] as unknown as readonly [EndpointCase, ...EndpointCase[]]

/** The first case. `plain.ts` looks for a form of its message that the endpoint accepts. */
export const PLAIN: EndpointCase = FIRST

const EXACT = { expectation: 'taken', section: 'Authentication 2', isExact: true, starts: 'a message ' } as const

/** Returns a message with these fields among its properties. */
const ofFields = (fields: string, base: Base, id: string): CaseRequest =>
  signed(base, write(base.form, `{"check":${quote(id)},${fields}}`))

/** Returns a message whose text was changed before it was signed. */
function ofRewritten(change: (text: string, form: Form) => string, base: Base, id: string): CaseRequest {
  const plain = write({ ...base.form, isSpaced: false }, texts({ check: id, other: 'value' }))
  return signed(base, change(plain, base.form))
}

/** Different ways to write a message. The signature covers each message as it is written here, not as a serialiser would write it. */
const BYTES: readonly EndpointCase[] = [
  ...table<string>(EXACT, ofFields, [
    ['bytes-float', 'with the number 39.0', '"value":39.0'],
    ['bytes-decimal', 'with the number 19.90', '"value":19.90'],
    ['bytes-exponent', 'with the number 1e3', '"value":1e3'],
    ['bytes-big-integer', 'with the number 9007199254740993', '"value":9007199254740993'],
    ['bytes-non-ascii', 'with letters outside ASCII, as UTF-8', '"value":"Zoë Ångström, e\u0301, 東京, 😀"'],
    [
      'bytes-escaped-non-ascii',
      'with letters outside ASCII, as \\u escapes',
      '"value":"Zo\\u00eb \\u6771\\u4EAC \\ud83d\\ude00"',
    ],
    [
      'bytes-line-separator',
      'with U+2028 and U+2029, as UTF-8 and as \\u escapes',
      '"one":"\u2028\u2029","two":"\\u2028\\u2029"',
    ],
    ['bytes-slash', 'with slashes', '"value":"https://hookline-check.example/a/b"'],
    ['bytes-escaped-slash', 'with escaped slashes: \\/', '"value":"https:\\/\\/hookline-check.example\\/a\\/b"'],
    ['bytes-html', "with the characters < > & ' +", `"value":"<b>1 & 2</b> 'a'+%41=b"`],
    [
      'bytes-escapes',
      'with quotation marks, backslashes and control characters, escaped in several ways',
      '"one":"say \\"a\\\\b\\" \\b\\f\\n\\r\\t","two":"\\u0022\\u005c\\u000a\\u0041"',
    ],
    ['bytes-key-order', 'with keys that are not sorted', '"zebra":"a","apple":"b"'],
    ['bytes-index-keys', 'with keys that are whole numbers and not sorted', '"item":"a","10":"b","9":"c"'],
    ['bytes-empty-object', 'with an empty object', '"value":{}'],
    ['bytes-null', 'with the value null', '"value":null'],
  ]),
  ...table(EXACT, ofRewritten, [
    [
      'bytes-spaces',
      'with white space between its values',
      (text) => arrange({ isSpaced: true }, text).replaceAll(', ', ' ,  ').replaceAll(': ', ' :\t'),
    ],
    [
      'bytes-indented',
      'with indentation, and with line breaks that are LF and CRLF',
      (text) => JSON.stringify(JSON.parse(text), undefined, 2).replace(/\n(?= *")/g, '\r\n'),
    ],
    ['bytes-line-break-at-end', 'with a line break at its end', (text, form) => `${arrange(form, text)}\n`],
    ['bytes-space-at-start', 'with white space at its start', (text, form) => ` \n${arrange(form, text)}`],
  ]),
]

const BODY = 'Outbound delivery: Request body'
const RESPONSE_TIME = 'Limits: Response time allowed per request'

const ANSWER_IN_TIME = table<Text>({ expectation: 'answered', section: RESPONSE_TIME }, ofText, [
  ['answer-in-time', 'another signed message', plainText],
])

const TRAFFIC = table<Requests>({ expectation: 'taken', section: BODY }, ofRequests, [
  [
    'retry-identical',
    'the same message twice, as in a retry',
    (base, id) => Array(2).fill(signed(base, plainText(base.form, id))),
    { section: 'Errors: No response within 5 seconds' },
  ],
  [
    'large-body',
    'a message of 400 KB',
    (base, id) => signed(base, write(base.form, texts({ check: id, filler: 'x'.repeat(400_000) }))),
    { section: RESPONSE_TIME },
  ],
  [
    'body-in-pieces',
    'a message whose bytes arrive in two pieces, 100 ms apart',
    (base, id) => ({ ...signed(base, plainText(base.form, id)), isInPieces: true }),
  ],
  [
    'header-names-in-lower-case',
    'a message whose header names are in lower case',
    (base, id) => {
      const request = signed(base, plainText(base.form, id))
      const lower = Object.entries(request.headers).map(([name, value]) => [name.toLowerCase(), value])
      return { ...request, headers: Object.fromEntries(lower) }
    },
    { section: 'Outbound delivery: Request header X-Signature' },
  ],
  [
    'nul',
    'a message with \\u0000 in a string',
    (base) => signed(base, write(base.form, '{"check":"nul","value":"a\\u0000b"}')),
    WARN,
  ],
])

/** Signed bodies that are not valid messages, or only barely valid. An endpoint may accept or refuse them, but must not fail. */
const BODIES = table<Text>({ expectation: 'survived', section: BODY, ...WARN }, ofText, [
  [
    'lone-surrogate',
    'a message with half of a surrogate pair, \\ud800',
    (form) => write(form, '{"check":"lone-surrogate","value":"a\\ud800b"}'),
  ],
  ['signed-not-json', 'a signed body that is not JSON', () => `hookline-check ${newId()}`],
  [
    'signed-cut-json',
    'a signed body that ends in the middle of a message',
    (form, id) => plainText(form, id).slice(0, -20),
  ],
  ['signed-empty-body', 'a signed empty body', () => ''],
  ['signed-null', 'a signed body that is null', () => 'null'],
  ['signed-list', 'a signed list of messages', (form, id) => `[${plainText(form, id)}]`],
  ['signed-empty-object', 'a signed body that is {}', () => '{}'],
  [
    'unknown-type',
    'a message of a type that does not exist',
    (form, id) => plainText(form, id, { type: quote('hookline-check') }),
  ],
  ['byte-order-mark', 'a message with a byte order mark before it', (form, id) => `\ufeff${plainText(form, id)}`],
])

/** Cases about connections. They run last, because their many requests may make the endpoint limit the rate of requests. */
const CONNECTIONS = table<Requests>({ expectation: 'taken', section: RESPONSE_TIME, ...WARN }, ofRequests, [
  [
    'keep-alive',
    'four messages over one connection, the second of them forged',
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
    (base, id) => Array.from({ length: 20 }, () => signed(base, plainText(base.form, id))),
    { how: 'at_once' },
  ],
])

/** Cases for senders that send the secret itself as a header. These cases replace those about signatures and exact bytes. */
const KEYS = table<(secret: string) => string | null>(
  { ...REFUSED, starts: 'a message ' },
  (proof, base, id) => signed(base, plainText(base.form, id), proof(base.secret)),
  [
    ['key-missing', 'without the header', () => null],
    ['key-empty', 'with an empty header', () => ''],
    ['key-of-another', 'with another value in the header', () => ANOTHER],
    ['key-longer', 'with the right value and one more character', (secret) => `${secret}x`],
    ['key-shorter', 'with the right value without its last character', (secret) => secret.slice(0, -1)],
    ['key-in-other-case', 'with the right value in the opposite case', (secret) => swapCase(secret)],
  ],
)

function swapCase(text: string): string {
  const swapped = text === text.toUpperCase() ? text.toLowerCase() : text.toUpperCase()
  return swapped === text ? `${text}x` : swapped
}

const BATCHES = table<Text>({ expectation: 'taken', section: BODY, ...WARN }, ofText, [
  [
    'batch',
    'a batch of two messages, signed as a whole',
    (form, id) => `[${plainText(form, id)},${plainText(form, id)}]`,
  ],
])

const MAPPED = table<Text>({ expectation: 'survived', section: BODY, ...WARN }, ofText, [
  ['mapped-body', 'a body that is not a message: an order', (_form, id) => `{"check":${quote(id)},"total":12.50}`],
])

/** The case for https URLs. It runs before any request is sent. */
export const CERTIFICATE: EndpointCase = {
  id: 'certificate',
  sends: 'nothing: only a TLS connection is opened',
  expects: 'a certificate from a trusted authority',
  expectation: 'answered',
  section: 'Authentication 4',
  severity: 'fail',
  requests: () => [],
}

/**
 * Returns whether a case sends one of the most important forged messages. These are sent early, because a slow endpoint
 * answers only a few cases within a minute.
 */
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

/** The additional cases for senders other than Segment. */
export const SENDER_CASES: readonly EndpointCase[] = [...KEYS, ...BATCHES, ...MAPPED]

/** Returns the cases that apply to a sender. */
export function casesOf({ as, signs }: Pick<RequestForm, 'as' | 'signs'>): readonly EndpointCase[] {
  if (as === 'segment') return ENDPOINT_CASES
  const isOfSignature = (each: EndpointCase): boolean => FORGED.includes(each) || BYTES.includes(each)
  const left = ENDPOINT_CASES.filter((each) => each.id !== 'forged-put' && !(signs === 'header' && isOfSignature(each)))
  const own = { 'customer.io': BATCHES, rudderstack: KEYS, 'segment-actions': [] }[as]
  return [...left, ...own, ...MAPPED]
}

/** What may be special about a request, and its one outcome, for a receiver with each pair of `methods`, `header`, `custom` and `batches`. */

import { expect, it } from 'vitest'
import { createReceiver, type HooklineError, type HooklineErrorCode } from '../../src/index.ts'
import { fixtures, manualClock } from '../../src/testing.ts'
import { hmac } from '../support/hmac.ts'
import { hostRequest, secret } from '../support/receive.ts'

const track = JSON.stringify(fixtures.track)
const message = (fields: object) => JSON.stringify(fields)
const ofType = (type: string | undefined) => ({ headers: { 'content-type': type } })
const good = hmac(Buffer.from(track), secret)

interface Special {
  readonly body?: string | Buffer
  /** Default: that of the body. */
  readonly signature?: string | readonly string[] | undefined
  readonly headers?: Readonly<Record<string, string | undefined>>
}

type Outcome = 200 | HooklineErrorCode

const requests: readonly (readonly [name: string, outcome: Outcome, request: Special])[] = [
  ['nothing special', 200, {}],
  ['no content type', 'content_type_unsupported', ofType(undefined)],
  ['another content type', 'content_type_unsupported', ofType('text/plain')],
  ['a content type that begins alike', 'content_type_unsupported', ofType('application/jsonp')],
  ['a charset', 200, ofType('application/json; charset=utf-8')],
  ['gzip', 'content_encoding_unsupported', { headers: { 'content-encoding': 'gzip' } }],
  ['the identity encoding', 200, { headers: { 'content-encoding': 'identity' } }],
  ['no signature', 'signature_missing', { signature: undefined }],
  ['an empty signature', 'signature_malformed', { signature: '' }],
  ['a signature sent twice', 'signature_malformed', { signature: [good, good] }],
  ['a signature in capitals', 'signature_malformed', { signature: good.toUpperCase() }],
  ['a signature that is too short', 'signature_malformed', { signature: good.slice(0, 39) }],
  ['a signature with its algorithm', 'signature_malformed', { signature: `sha1=${good}` }],
  ['the signature of another secret', 'signature_mismatch', { signature: hmac(Buffer.from(track), 'guess') }],
  ['a changed body', 'signature_mismatch', { body: track.replace('Order', 'order'), signature: good }],
  ['a truncated body', 'signature_mismatch', { body: track.slice(0, -1), signature: good }],
  ['an array, signed by its first element', 'signature_mismatch', { body: `[${track},${track}]`, signature: good }],
  ['an array', 'body_not_json', { body: `[${track}]` }],
  ['an empty body', 'body_not_json', { body: '' }],
  ['a JSON string', 'body_not_json', { body: '"hello"' }],
  ['null', 'body_not_json', { body: 'null' }],
  ['invalid UTF-8', 'body_not_json', { body: Buffer.from('{"type":"page","userId":"\xff"}', 'latin1') }],
  ['a byte order mark', 200, { body: `\ufeff${track}` }],
  ['letters beyond ASCII', 200, { body: message({ ...fixtures.track, event: 'Commande passée 🎉' }) }],
  ['numbers and spaces that JSON can write otherwise', 200, { body: '{ "type":"page","userId":"u","total":39.0 }\n' }],
  ['an unknown type', 'message_type_unknown', { body: message({ type: 'purchase', userId: 'u' }) }],
  ['no type', 'message_invalid', { body: message({ userId: 'u' }) }],
  ['no event', 'message_invalid', { body: message({ type: 'track', userId: 'u' }) }],
]

/** Each pair of values of two options is in one of them. */
const combinations = [
  { method: 'POST', header: false, custom: false, batches: false },
  { method: 'POST', header: true, custom: true, batches: true },
  { method: 'PATCH', header: false, custom: true, batches: true },
  { method: 'PATCH', header: true, custom: false, batches: true },
  { method: 'PATCH', header: true, custom: true, batches: false },
] as const
type Combination = (typeof combinations)[number]

const VALUES = ['a JSON string', 'null', 'an unknown type', 'no type']

function outcomeOf(name: string, signed: Outcome, { header, custom, batches }: Combination): Outcome {
  if (name === 'an array' && (batches || custom)) return 200
  if (custom && VALUES.includes(name)) return 200
  // The value of the header is the right signature: the same requests are refused.
  if (header && (name === 'no signature' || name === 'an empty signature')) return 'header_missing'
  return header ? (String(signed).replace(/^signature_.*/, 'header_mismatch') as Outcome) : signed
}

it.each(requests)('a request with %s: %s', async (name, signed, { body = track, headers, ...special }) => {
  for (const combination of combinations) {
    const { method, header, custom, batches } = combination
    const bytes = Buffer.from(body)
    const right = hmac(bytes, secret)
    const codes: string[] = []
    const handled: unknown[] = []
    const receiver = createReceiver({
      ...(header ? { header: { name: 'x-key', value: right } } : { secret }),
      ...{ methods: [method], custom, batches, clock: manualClock() },
      onError: ({ code }: HooklineError) => codes.push(code),
    } as object)
    receiver.on('*', (message) => void handled.push(message))
    const signature = 'signature' in special ? special.signature : right
    const proof = signature === undefined ? {} : { [header ? 'x-key' : 'x-signature']: signature }

    const answer = await receiver.handle(
      hostRequest({
        method,
        headers: { 'content-type': 'application/json', ...headers, ...proof } as never,
        readBody: () => ({ bytes, source: 'stream' }),
      }),
    )

    const outcome = outcomeOf(name, signed, combination)
    const isHandled = String(outcome) === '200'
    expect(codes).toEqual(isHandled ? [] : [outcome])
    expect(handled).toHaveLength(isHandled ? 1 : 0)
    expect(answer.status === 200).toBe(isHandled)
    expect(answer.body).not.toMatch(new RegExp(`${secret}|${right}`))
  }
})

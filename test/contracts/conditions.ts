/** Everything that can be special about a request, and its one outcome, by how exact the body was when it was found. */

import { gzipSync } from 'node:zlib'
import type { HooklineErrorCode } from '../../src/protocol/error.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { hmac } from '../support/hmac.ts'
import type { Wire } from '../support/wire.ts'

/** The bytes themselves; text that was decoded and is encoded again; or an object that was parsed and is serialised again. */
export type Fidelity = 'exact' | 'text' | 'json'

/** 200, or the code of the error. */
export type Outcome = 200 | HooklineErrorCode

export interface Condition {
  readonly name: string
  readonly wire: Wire
  readonly options?: Partial<ReceiverOptions>
  readonly outcome: Outcome | { readonly [F in Fidelity]?: Outcome }
  readonly path?: string
  /** Only where no parser ran before: what one leaves of the body does not matter. */
  readonly streamOnly?: boolean
}

export const secret = 'a shared secret'
const track = JSON.stringify(fixtures.track)

/** A request signed according to the specification, by an independent implementation. */
export function signed(body: string | Uint8Array, headers: Wire['headers'] = {}, wire: Partial<Wire> = {}): Wire {
  const bytes = Buffer.from(body)
  return {
    headers: { 'content-type': 'application/json', 'x-signature': hmac(bytes, secret), ...headers },
    chunks: bytes.length === 0 ? [] : [bytes],
    ...wire,
  }
}

function withSignature(signature: string | readonly string[]): Wire {
  return signed(track, { 'x-signature': signature })
}

function without(header: string): Wire {
  const wire = signed(track)
  return { ...wire, headers: Object.fromEntries(Object.entries(wire.headers).filter(([name]) => name !== header)) }
}

function message(fields: object): Wire {
  return signed(JSON.stringify(fields))
}

function tampered(change: (bytes: Buffer) => Buffer): Wire {
  return { ...signed(track), chunks: [change(Buffer.from(track))] }
}

const good = hmac(Buffer.from(track), secret)
const forged = { exact: 'signature_mismatch', text: 'signature_mismatch', json: 'body_consumed' } as const
const lossy = { exact: 200, text: 200, json: 'body_consumed' } as const
const notJson = { exact: 'body_not_json', text: 'body_not_json' } as const
const atLimit = { limit: track.length }
const underLimit = { limit: track.length - 1 }

const rewritten = {
  '39.0': '{"type":"track","userId":"u","event":"e","properties":{"total":39.0}}',
  '1e3': '{"type":"track","userId":"u","event":"e","properties":{"total":1e3}}',
  '2^53+1': '{"type":"track","userId":"u","event":"e","properties":{"id":9007199254740993}}',
  escapes: '{"type":"track","userId":"u","event":"\\u0041 \\/ \\u00e9","properties":{}}',
  'spaces between': '{ "type": "track", "userId": "u", "event": "e" }\n',
  'reordered keys': '{"type":"track","userId":"u","event":"e","properties":{"b":1,"2":1,"1":1}}',
  'duplicate keys': '{"type":"track","userId":"x","event":"e","userId":"u"}',
}

/** What may be special about headers, messages and secrets. */
const withoutParser: readonly Condition[] = [
  { name: 'no content type', wire: without('content-type'), outcome: 'content_type_unsupported' },
  {
    name: 'another content type',
    wire: signed(track, { 'content-type': 'text/plain' }),
    outcome: 'content_type_unsupported',
  },
  {
    name: 'a content type that begins alike',
    wire: signed(track, { 'content-type': 'application/jsonp' }),
    outcome: 'content_type_unsupported',
  },
  {
    name: 'a malformed content type',
    wire: signed(track, { 'content-type': 'junk' }),
    outcome: 'content_type_unsupported',
  },
  {
    name: 'charset parameter',
    wire: signed(track, { 'content-type': 'application/json; charset=utf-8' }),
    outcome: 200,
  },
  {
    name: 'content type in capitals, spaces before its parameter',
    wire: signed(track, { 'content-type': 'Application/JSON ; charset=UTF-8' }),
    outcome: 200,
  },
  { name: 'signature missing', wire: without('x-signature'), outcome: 'signature_missing' },
  { name: 'signature empty', wire: withSignature(''), outcome: 'signature_malformed' },
  { name: 'signature repeated', wire: withSignature([good, good]), outcome: 'signature_malformed' },
  { name: 'signature in capitals', wire: withSignature(good.toUpperCase()), outcome: 'signature_malformed' },
  { name: 'signature too short', wire: withSignature(good.slice(0, 39)), outcome: 'signature_malformed' },
  { name: 'signature and junk', wire: withSignature(`${good}00`), outcome: 'signature_malformed' },
  { name: 'signature of another algorithm', wire: withSignature(`sha1=${good}`), outcome: 'signature_malformed' },
  {
    name: 'unknown type',
    wire: message({ type: 'purchase', userId: 'u' }),
    outcome: 'message_type_unknown',
    path: 'type',
  },
  {
    name: 'type named like a property of every object',
    wire: message({ type: 'constructor', userId: 'u' }),
    outcome: 'message_type_unknown',
    path: 'type',
  },
  { name: 'type missing', wire: message({ userId: 'u' }), outcome: 'message_invalid', path: 'type' },
  { name: 'event missing', wire: message({ type: 'track', userId: 'u' }), outcome: 'message_invalid', path: 'event' },
  {
    name: 'event named constructor',
    wire: message({ type: 'track', userId: 'u', event: 'constructor' }),
    outcome: 200,
  },
  {
    name: 'userId null beside an anonymousId',
    wire: message({ type: 'page', userId: null, anonymousId: 'a' }),
    outcome: 200,
  },
  {
    name: 'userId null and nothing beside it',
    wire: message({ type: 'page', userId: null }),
    outcome: 'message_invalid',
    path: 'userId',
  },
  {
    name: 'a secret provider that fails',
    wire: signed(track),
    options: { secret: () => Promise.reject(new Error('vault sealed')) },
    outcome: 'secret_unavailable',
  },
  {
    name: 'a secret provider that yields nothing',
    wire: signed(track),
    options: { secret: async () => undefined },
    outcome: 'secret_unavailable',
  },
  {
    name: 'a secret provider that yields an empty secret',
    wire: signed(track),
    options: { secret: () => '' },
    outcome: 'secret_unavailable',
  },
  {
    name: 'a secret provider',
    wire: signed(track),
    options: { secret: async () => ['another', secret] },
    outcome: 200,
  },
]

export const conditions: readonly Condition[] = [
  ...withoutParser.map((condition) => ({ ...condition, streamOnly: true })),
  { name: 'clean', wire: signed(track), outcome: 200 },
  ...Object.entries(rewritten).map(([name, body]) => ({ name, wire: signed(body), outcome: lossy })),
  {
    name: '__proto__ and constructor.prototype keys',
    wire: signed(
      '{"type":"track","userId":"u","event":"e","__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}',
    ),
    outcome: 200,
  },
  {
    name: 'a byte order mark',
    wire: signed(`\ufeff${track}`),
    outcome: { exact: 200, text: 'body_consumed', json: 'body_consumed' },
  },
  {
    name: 'invalid UTF-8',
    wire: signed(Buffer.from('{"type":"track","userId":"u","event":"\xff"}', 'latin1')),
    outcome: { exact: 'body_not_json', text: 'body_consumed', json: 'body_consumed' },
  },
  {
    name: 'letters beyond ASCII',
    wire: signed(JSON.stringify({ ...fixtures.track, event: 'Commande passée 🎉' })),
    outcome: 200,
  },
  {
    name: 'a batch',
    wire: signed(`[${track}]`),
    options: { batches: true },
    outcome: 200,
  },
  { name: 'split at every byte', wire: signed(track, {}, { chunks: split(track) }), outcome: 200 },
  {
    name: 'split at every byte, chunked',
    wire: signed(track, {}, { chunks: split(track), chunked: true }),
    outcome: 200,
  },
  {
    name: 'gzip',
    wire: signed(gzipSync(track), { 'content-encoding': 'gzip' }),
    outcome: 'content_encoding_unsupported',
  },
  { name: 'identity encoding', wire: signed(track, { 'content-encoding': 'identity' }), outcome: 200 },
  { name: 'empty', wire: signed(''), outcome: notJson },
  { name: 'at the limit', wire: signed(track), options: atLimit, outcome: 200 },
  { name: 'at the limit, chunked', wire: signed(track, {}, { chunked: true }), options: atLimit, outcome: 200 },
  { name: 'over the limit', wire: signed(track), options: underLimit, outcome: 'body_too_large' },
  {
    name: 'over the limit, chunked',
    wire: signed(track, {}, { chunked: true }),
    options: underLimit,
    outcome: 'body_too_large',
  },
  {
    name: 'far over the limit, more than is dropped',
    wire: signed('x'.repeat(4 * 1024 * 1024)),
    outcome: 'body_too_large',
    streamOnly: true,
  },
  { name: 'signed non-JSON', wire: signed('hello'), outcome: notJson },
  { name: 'a JSON string', wire: signed('"hello"'), outcome: notJson },
  { name: 'null', wire: signed('null'), outcome: notJson },
  {
    name: 'an array whose signature covers all of it',
    wire: signed(`[${track}]`),
    outcome: 'body_not_json',
  },
  {
    name: 'an array whose signature covers its first element',
    wire: { ...signed(`[${track},${track}]`), headers: signed(track).headers },
    outcome: forged,
  },
  { name: 'signature of another secret', wire: withSignature(hmac(Buffer.from(track), 'guess')), outcome: forged },
  { name: 'body changed', wire: tampered((bytes) => bytes.fill('X', 40, 41)), outcome: forged },
  {
    name: 'body truncated',
    wire: tampered((bytes) => bytes.subarray(0, -1)),
    outcome: { exact: 'signature_mismatch', text: 'signature_mismatch' },
  },
]

function split(text: string): Uint8Array[] {
  return [...Buffer.from(text)].map((byte) => Uint8Array.of(byte))
}

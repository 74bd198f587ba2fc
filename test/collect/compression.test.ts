/** Bodies that clients compress: which are taken, which are refused, and what the refused ones cost. */

import { deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { EndpointBody } from '../../src/host/body.ts'
import { BATCH_LIMIT } from '../../src/protocol/limits.ts'
import { basic, setUpCollector, writeKey } from '../support/collect.ts'

const batch = JSON.stringify({ batch: [{ type: 'track', userId: 'u', event: 'Größe ☃' }] })
const whole = gzipSync(batch)

async function post(bytes: Uint8Array, coding: string, source: EndpointBody['source'] = 'stream') {
  const { post, destination } = setUpCollector()
  const authorization = basic(writeKey)
  const headers = { 'content-type': 'application/json', authorization, 'content-encoding': coding }
  const { status, json } = await post('/v1/batch', '', { headers, readBody: () => ({ bytes, source }) })
  return { outcome: json.code ?? status, detail: json.detail, messages: destination.messages }
}

describe('is taken', () => {
  it.each<[string, string, Uint8Array]>([
    ['gzip', 'gzip', whole],
    ['gzip in two members', 'gzip', Buffer.concat([gzipSync(batch.slice(0, 20)), gzipSync(batch.slice(20))])],
    ['gzip by its old name', 'x-gzip', whole],
    ['deflate', 'deflate', deflateSync(batch)],
    ['nothing, said so', 'identity', Buffer.from(batch)],
  ])('%s', async (_what, coding, bytes) => {
    const { outcome, messages } = await post(bytes, coding)
    expect([outcome, messages]).toMatchObject([200, [{ type: 'track', event: 'Größe ☃' }]])
  })

  it.each<[string, EndpointBody['source'], string, Uint8Array]>([
    ['inflated and parsed', 'reserialised', 'gzip', Buffer.from(batch)],
    ['left compressed', 'rawBody', 'gzip', whole],
    ['left compressed, too', 'rawBody', 'deflate', deflateSync(batch)],
  ])('what a parser that ran before has %s', async (_what, source, coding, bytes) => {
    expect((await post(bytes, coding, source)).messages).toHaveLength(1)
  })
})

describe('is refused', () => {
  const notThat = 'content_encoding_invalid'
  it.each<[string, string, Uint8Array, string]>([
    ['another coding', 'br', whole, 'content_encoding_unsupported'],
    ['two codings', 'gzip, gzip', gzipSync(whole), 'content_encoding_unsupported'],
    ['gzip within gzip', 'gzip', gzipSync(whole), 'body_not_json'],
    ['gzip that is said to be deflate', 'deflate', whole, notThat],
    ['gzip cut off in its data', 'gzip', whole.subarray(0, -9), notThat],
    ['gzip with junk behind it', 'gzip', Buffer.concat([whole, Buffer.from('junk')]), notThat],
    ['deflate with junk behind it', 'deflate', Buffer.concat([deflateSync(batch), Buffer.from('junk')]), notThat],
  ])('%s', async (_what, coding, bytes, code) => {
    const { outcome, messages } = await post(bytes, coding)
    expect([outcome, messages]).toEqual([code, []])
  })

  it('before it is read, when its coding is unknown, and says which are known', async () => {
    const { post } = setUpCollector()
    const headers = { 'content-type': 'application/json', authorization: basic(writeKey), 'content-encoding': 'zstd' }
    const { status, json } = await post('/v1/batch', '', { headers, readBody: () => expect.fail('It was read.') })
    expect([status, json.detail]).toEqual([415, expect.stringMatching(/gzip.*deflate.*zstd/)])
  })
})

it.each(['gzip', 'deflate'])('Limits: 500 KB, as sent with %s and inflated', async (coding) => {
  const compress = coding === 'gzip' ? gzipSync : deflateSync
  const [most, more] = [BATCH_LIMIT, BATCH_LIMIT + 1].map((bytes) => compress('{"batch":[]}'.padEnd(bytes)))
  expect((await post(most as Buffer, coding)).outcome).toBe(200)
  expect((await post(more as Buffer, coding)).outcome).toBe('body_too_large')
})

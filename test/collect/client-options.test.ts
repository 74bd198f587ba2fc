/** What createClient() takes ("Go client library", Client settings). */

import { describe, expect, it } from 'vitest'
import { type ClientOptions, createClient } from '../../src/client.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { ENDPOINT, numbered, settle, setUp } from './dispatcher.ts'

const create = (options: object, writeKey: unknown = 'write-key') =>
  createClient(writeKey as string, { endpoint: ENDPOINT, ...options } as ClientOptions)

describe('client settings', () => {
  it.each([
    ['FlushAfter · default 5 seconds', {}, 5000],
    ['FlushAfter · as given', { flushAfterMs: 700 }, 700],
  ])('%s', async (_name, options, ms) => {
    const { client, clock, sent } = setUp([], options)
    client.track(numbered(0))
    await clock.advance(ms - 1)
    expect(sent).toHaveLength(0)
    await clock.advance(1)
    expect(sent).toHaveLength(1)
  })

  it.each([
    ['https://analytics.example.com/v1/batch', 'https://analytics.example.com', '/v1/batch'],
    ['http://127.0.0.1:8080/', 'http://127.0.0.1:8080', '/'],
    ['https://example.com/collect/?token=a%20b', 'https://example.com', '/collect/?token=a%20b'],
  ])('Endpoint · %s is posted to as given', async (endpoint, origin, path) => {
    const { client, sent } = setUp([], { endpoint, flushAt: 1 })
    client.track(numbered(0))
    await settle()
    expect(sent[0]).toMatchObject({ method: 'POST', origin, path })
  })

  it('a default of flushAt that is above maxQueued is lowered to it', async () => {
    const { client, sent } = setUp([], { maxQueued: 2 })
    client.track(numbered(0))
    client.track(numbered(1))
    await settle()
    expect(sent).toHaveLength(1)
  })
})

describe('options that are refused', () => {
  it.each([undefined, '', 7, null])('writeKey %o', (writeKey) => {
    expect(() => createClient(writeKey as string, { endpoint: ENDPOINT })).toThrow(TypeError)
    expect(() => createClient(writeKey as string, { endpoint: ENDPOINT })).toThrow(
      /^`writeKey` must be a non-empty string\. Got .+\. Pass/,
    )
  })

  it('a write key with a colon, which no user name holds', () => {
    expect(() => create({}, 'write:key')).toThrow(/^`writeKey` must not contain a colon\. Got one that does\./)
  })

  it.each([undefined, null, 'https://example.com'])('options %o', (options) => {
    expect(() => createClient('write-key', options as never)).toThrow(TypeError)
    expect(() => createClient('write-key', options as never)).toThrow(/^`createClient: options` must be an object\./)
  })

  it.each<[string, object, RegExp]>([
    [
      'no endpoint',
      { endpoint: undefined },
      /^`endpoint` is required\. Got undefined\. Pass the full URL .*\/v1\/batch/,
    ],
    [
      'an endpoint that is no text',
      { endpoint: 7 },
      /^`endpoint` must be a full URL\. Got a number\. .*\/v1\/batch'\.$/,
    ],
    ['an endpoint without a scheme', { endpoint: 'example.com/v1/batch' }, /^`endpoint` must be a full URL/],
    ['an endpoint of another scheme', { endpoint: 'ftp://example.com' }, /^`endpoint` must be a full URL/],
    [
      'an endpoint with a user',
      { endpoint: 'https://me@example.com' },
      /^`endpoint` must hold no user name and password/,
    ],
    [
      'an endpoint with a password',
      { endpoint: 'https://:pw@example.com' },
      /^`endpoint` must hold no user name and password/,
    ],
    ['an endpoint with a fragment', { endpoint: 'https://example.com/#x' }, /^`endpoint` must hold no fragment/],
    [
      'size and flushAt that differ',
      { size: 1, flushAt: 2 },
      /^`size` must equal `flushAt`, of which it is another name\. Got 1\./,
    ],
    ['flushAt 0', { flushAt: 0 }, /^`flushAt` must be a whole number from 1/],
    ['flushAt 1.5', { flushAt: 1.5 }, /^`flushAt` must be/],
    ['flushAt as text', { flushAt: '20' }, /^`flushAt` must be/],
    ['size 0', { size: 0 }, /^`size` must be a whole number from 1/],
    [
      'flushAt above maxQueued',
      { flushAt: 3, maxQueued: 2 },
      /^`flushAt` must be at most `maxQueued`, which is 2\. Got 3\./,
    ],
    ['size above maxQueued', { size: 3, maxQueued: 2 }, /^`size` must be at most `maxQueued`/],
    ['flushAfterMs 0', { flushAfterMs: 0 }, /^`flushAfterMs` must be/],
    ['flushAfterMs too long for a timer', { flushAfterMs: 2 ** 31 }, /^`flushAfterMs` must be/],
    ['maxQueued 0', { maxQueued: 0 }, /^`maxQueued` must be/],
    ['maxQueuedBytes 0', { maxQueuedBytes: 0 }, /^`maxQueuedBytes` must be/],
    ['maxQueuedBytes below one call', { maxQueuedBytes: 32 * 1024 - 1 }, /^`maxQueuedBytes` must be/],
    [
      'whenFull of another kind',
      { whenFull: 'drop' },
      /^`whenFull` must be one of 'throw', 'drop_oldest'\. Got 'drop'\./,
    ],
    ['whenFull as it was in 0.1', { whenFull: 'drop-oldest' }, /Did you mean 'drop_oldest'\?/],
    ['maxRetries -1', { maxRetries: -1 }, /^`maxRetries` must be a whole number from 0/],
    ['maxInFlight 0', { maxInFlight: 0 }, /^`maxInFlight` must be/],
    ['timeoutMs 0', { timeoutMs: 0 }, /^`timeoutMs` must be/],
    ['timeoutMs null', { timeoutMs: null }, /^`timeoutMs` must be/],
    ['onError that is no function', { onError: 'log' }, /^`onError` must be a function/],
    ['logger of another shape', { logger: {} }, /^`logger.error` must be a function/],
    ['random that is no function', { random: 0.5 }, /^`random` must be a function/],
    ['a dispatcher without dispatch', { dispatcher: {} }, /^`dispatcher` must be a Dispatcher/],
    ['a dispatcher that is null', { dispatcher: null }, /^`dispatcher` must be/],
    [
      'a dispatcher and ca',
      { dispatcher: { dispatch() {} }, ca: createCertificate('private_ca').ca },
      /^`dispatcher` opens its own connections, so `ca` has no effect on it\. Got dispatcher and ca\. Remove one of them\.$/,
    ],
    [
      'a path for ca',
      { ca: './ca.pem' },
      /^`ca` must be PEM certificates that can be read\. Got a string\. Pass the content/,
    ],
    ['a clock without now', { clock: {} }, /^`clock.now` must be a function/],
    ['a clock that is null', { clock: null }, /^`clock.now` must be a function/],
    [
      'an unknown option',
      { flushInterval: 1 },
      /^`flushInterval` is not an option\. .* Valid options: endpoint, flushAt/,
    ],
  ])('%s', (_name, options, message) => {
    expect(() => create(options)).toThrow(TypeError)
    expect(() => create(options)).toThrow(message)
  })

  it('say nothing of what they hold: a URL may have a token', () => {
    expect(() => create({ endpoint: 'https://user:pa55@example.com/?token=s3cret' })).not.toThrow(/pa55|s3cret/)
  })
})

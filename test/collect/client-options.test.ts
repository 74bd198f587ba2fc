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
  it.each([undefined, '', 7, null, 'write:key'])('writeKey %o', (writeKey) => {
    expect(() => createClient(writeKey as string, { endpoint: ENDPOINT })).toThrow(TypeError)
    expect(() => createClient(writeKey as string, { endpoint: ENDPOINT })).toThrow('`writeKey`')
  })

  it.each([undefined, null, 'https://example.com'])('options %o', (options) => {
    expect(() => createClient('write-key', options as never)).toThrow(TypeError)
    expect(() => createClient('write-key', options as never)).toThrow('`createClient: options`')
  })

  it.each<[string, object, string]>([
    ['no endpoint', { endpoint: undefined }, '`endpoint`'],
    ['an endpoint without a scheme', { endpoint: 'example.com/v1/batch' }, '`endpoint`'],
    ['an endpoint of another scheme', { endpoint: 'ftp://example.com' }, '`endpoint`'],
    ['an endpoint with a user', { endpoint: 'https://me@example.com' }, '`endpoint`'],
    ['an endpoint with a fragment', { endpoint: 'https://example.com/#x' }, '`endpoint`'],
    ['size and flushAt that differ', { size: 1, flushAt: 2 }, '`size`'],
    ['flushAt 0', { flushAt: 0 }, '`flushAt`'],
    ['size 0', { size: 0 }, '`size`'],
    ['flushAt above maxQueued', { flushAt: 3, maxQueued: 2 }, '`flushAt`'],
    ['flushAfterMs 0', { flushAfterMs: 0 }, '`flushAfterMs`'],
    ['flushAfterMs too long for a timer', { flushAfterMs: 2 ** 31 }, '`flushAfterMs`'],
    ['maxQueued 0', { maxQueued: 0 }, '`maxQueued`'],
    ['maxQueuedBytes below one call', { maxQueuedBytes: 32 * 1024 - 1 }, '`maxQueuedBytes`'],
    ['whenFull of another kind', { whenFull: 'drop' }, '`whenFull`'],
    ['maxRetries -1', { maxRetries: -1 }, '`maxRetries`'],
    ['maxInFlight 0', { maxInFlight: 0 }, '`maxInFlight`'],
    ['timeoutMs 0', { timeoutMs: 0 }, '`timeoutMs`'],
    ['onError that is no function', { onError: 'log' }, '`onError`'],
    ['logger of another shape', { logger: {} }, '`logger.error`'],
    ['random that is no function', { random: 0.5 }, '`random`'],
    ['a dispatcher without dispatch', { dispatcher: {} }, '`dispatcher`'],
    ['a dispatcher and ca', { dispatcher: { dispatch() {} }, ca: createCertificate('private_ca').ca }, '`dispatcher`'],
    ['a path for ca', { ca: './ca.pem' }, '`ca`'],
    ['a clock without now', { clock: {} }, '`clock.now`'],
    ['an unknown option', { flushInterval: 1 }, '`flushInterval`'],
  ])('%s', (_name, options, message) => {
    expect(() => create(options)).toThrow(TypeError)
    expect(() => create(options)).toThrow(message)
  })

  it('say nothing of what they hold: a URL may have a token', () => {
    expect(() => create({ endpoint: 'https://user:pa55@example.com/?token=s3cret' })).not.toThrow(/pa55|s3cret/)
  })
})

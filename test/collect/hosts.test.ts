/** The collector behind every adapter, below the prefix `/webhooks` of the hosts. */

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import express from 'express'
import { describe, expect, it, onTestFinished } from 'vitest'
import { serve } from '../../adapters/express.ts'
import { BATCH_LIMIT, DISCARD_LIMIT } from '../../src/protocol/limits.ts'
import { basic, setUpCollector, writeKey } from '../support/collect.ts'
import { type Before, bufferedHosts, hosts } from '../support/hosts.ts'
import { clientOfHttp1, type Wire } from '../support/wire.ts'

const json = { 'content-type': 'application/json', authorization: basic(writeKey) }
const page = JSON.stringify({ type: 'page', userId: 'u' })

function post(path: string, body: string | Uint8Array, headers: Wire['headers'] = json): Wire {
  return { path: `/webhooks${path}`, headers, chunks: [Buffer.from(body)] }
}

describe.each([...hosts, ...bufferedHosts])('$name', (host) => {
  async function start(before: Before = 'nothing') {
    const { collector, destination } = setUpCollector()
    const running = await host.start(collector, before)
    onTestFinished(() => running.close())
    return { ...running, destination }
  }

  it.each(host.befores)('accepts a batch: %s read the body before', async (before) => {
    const { send, destination } = await start(before)
    const reply = await send(post('/v1/batch?from=test', `{"batch":[${page},{}]}`))
    const answer = { accepted: 1, refused: [{ index: 1 }] }
    expect([reply?.status, JSON.parse(reply?.text ?? '')]).toMatchObject([200, answer])
    const context = host.http === undefined ? {} : { ip: '127.0.0.1' }
    expect(destination.messages).toMatchObject([{ type: 'page', context }])
  })

  it('accepts the gzip form of a server', async () => {
    const { send, destination } = await start()
    const headers = { ...json, 'content-type': 'application/x-www-form-urlencoded', 'content-encoding': 'gzip' }
    const reply = await send({ ...post('/v1/batch', gzipSync(`{"batch":[${page}]}`), headers), chunked: true })
    expect([reply?.status, destination.messages]).toMatchObject([200, [{ type: 'page', userId: 'u' }]])
  })

  it('answers a preflight', async () => {
    const { send } = await start()
    const reply = await send({ method: 'OPTIONS', path: '/webhooks/v1/t', headers: {}, chunks: [] })
    expect([reply?.status, reply?.text]).toEqual([200, ''])
    expect(reply?.headers['access-control-allow-methods']).toBe('POST')
  })

  it('refuses an unknown write key of the header before the body has arrived', async () => {
    const { send, destination } = await start()
    const headers = { ...json, authorization: basic('another key') }
    const wire = { ...post('/v1/batch', '{"batch":[', headers), contentLength: BATCH_LIMIT, ending: 'nothing' } as const
    const reply = await send(wire)
    expect([reply?.status, JSON.parse(reply?.text ?? '').code]).toEqual([401, 'write_key_unknown'])
    expect(destination.messages).toEqual([])
  })

  if (host.http === 1) {
    it.each([
      ['that is short keeps', { contentLength: BATCH_LIMIT }, 'keep-alive'],
      ['that is too long closes', { contentLength: 2 * DISCARD_LIMIT }, 'close'],
      ['without a length closes', { chunked: true }, 'close'],
    ])('refused early, a body %s the connection', async (_what, length, connection) => {
      const { send } = await start()
      const headers = { ...json, authorization: basic('another key'), connection: 'keep-alive' }
      const reply = await send({ ...post('/v1/batch', '{', headers), ...length, ending: 'nothing' })
      expect([reply?.status, reply?.headers.connection]).toEqual([401, connection])
    })
  }
})

it.each([true, false])('asks for another mount when a parser took JSON for a form, extended: %s', async (extended) => {
  const { collector } = setUpCollector()
  const server = express().use(express.urlencoded({ extended }), serve(collector)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const headers = { ...json, 'content-type': 'application/x-www-form-urlencoded', 'content-encoding': 'gzip' }
  const { send } = clientOfHttp1((server.address() as AddressInfo).port)
  const reply = await send({ headers, path: '/v1/batch', chunks: [gzipSync(`{"batch":[${page}]}`)] })
  server.close()
  const detail = expect.stringContaining('Mount the collector before the parser')
  expect(JSON.parse(reply?.text ?? '')).toMatchObject({ status: 500, code: 'body_consumed', detail })
})

/** `hookline send` and `hookline check` in the form of each known sender, against receivers that are set up for it. */

import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { serve } from '../../../adapters/node.ts'
import type { ReceivedMessage } from '../../../src/protocol/message.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import type { Delivery } from '../../../src/receive/delivery.ts'
import type { ReceiverOptions } from '../../../src/receive/receiver-options.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import type { KnownSender } from '../../../src/testing/known-senders.ts'
import { createFolder, hookline } from './command.ts'

vi.setConfig({ testTimeout: 60_000 })

const secret = 'a shared secret'
const env = { HOOKLINE_SECRET: secret }
const key: ReceiverOptions = { header: { name: 'x-webhook-key', value: secret } }
const methods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

async function start(options: ReceiverOptions) {
  const seen: [ReceivedMessage, Delivery][] = []
  const receiver = createReceiver({ onError: () => {}, custom: true, methods, ...options } as ReceiverOptions)
  receiver.on('*', (message, delivery) => void seen.push([message, delivery]))
  const server = createServer(serve(receiver, { path: '/webhooks' }))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { seen, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/webhooks` }
}

describe.each<[KnownSender, ReceiverOptions, string]>([
  ['segment-actions', { secret }, 'PUT'],
  ['customer.io', { secret, batches: true }, 'DELETE'],
  ['rudderstack', key, 'PATCH'],
])('--as %s', (as, options, method) => {
  const send = (url: string, ...args: string[]) => hookline(['send', ...args, '--as', as, '--to', url], { env })

  it('send: a message in its form, by a method of its own', async () => {
    const { url, seen } = await start(options)
    expect((await send(url, 'track', '--set', 'properties.total=12', '--method', method, '--count', '2')).code).toBe(0)
    const [message, delivery] = seen[0] as (typeof seen)[0]
    expect(message).toMatchObject({ type: 'track', properties: { total: 12 }, channel: 'server' })
    expect([delivery.method, delivery.verified]).toEqual([method, as === 'rudderstack' ? 'header' : 'signature'])
    expect(seen[1]?.[0].messageId).not.toBe(message.messageId)
  })

  it('send: each of the seven types', async () => {
    const { url, seen } = await start(options)
    for (const type of Object.keys(fixtures)) expect((await send(url, type)).code).toBe(0)
    expect(seen.map(([{ type }]) => type)).toEqual(Object.keys(fixtures))
  })

  it('send: any JSON, and a batch', async () => {
    const { url, seen } = await start(options)
    const folder = await createFolder()
    const [order, batch] = [join(folder, 'order.json'), join(folder, 'batch.json')]
    await writeFile(order, '{"order": 7}')
    await writeFile(batch, '[{"type":"track","userId":"u","event":"E"},{"order":7}]')
    expect((await send(url, order)).code).toBe(0)
    expect(seen[0]?.[0]).toEqual({ type: 'custom', body: { order: 7 } })
    expect((await send(url, batch)).code).toBe(0)
    expect(seen.slice(1).map(([{ type }]) => type)).toEqual(options.batches ? ['track', 'custom'] : ['custom'])
  })

  it.each(['no-signature', 'wrong-secret', 'bad-signature'])('send --tamper %s: refused', async (way) => {
    const { url, seen } = await start(options)
    const { code, stdout } = await send(url, 'track', '--tamper', way)
    expect([code, seen]).toEqual([1, []])
    expect(stdout).toMatch(/^401/)
  })

  it('check: a receiver that is set up for it passes, with cases of its own', async () => {
    const { url } = await start(options)
    const { code, stdout } = await hookline(['check', url, '--as', as, '--method', method, '--json'], { env })
    const results = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(results.filter(({ result }) => result !== 'pass')).toEqual([])
    const own = {
      'segment-actions': 'bytes-float',
      'customer.io': 'batch',
      rudderstack: 'key-longer',
      segment: '',
    }
    expect(results.map(({ id }) => id)).toEqual(expect.arrayContaining([own[as], 'mapped-body', 'type-alias']))
    expect(results.some(({ id }) => id === 'signature-forged')).toBe(as !== 'rudderstack')
    expect(code).toBe(0)
  })
})

it('check --as rudderstack: an endpoint that compares the beginning of the header fails', async () => {
  const server = createServer((request, response) => {
    request.resume().on('end', () => {
      response.statusCode = String(request.headers['x-key']).startsWith(secret) ? 200 : 401
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const run = (name: string) =>
    hookline(['check', url, '--as', 'rudderstack', '--key-header', name, '--only', 'plain-message,key-longer'], { env })
  const found = await run('X-Key')
  expect(found.stdout).toContain('Compare the whole value of the header')
  expect(found.code).toBe(1)
  expect((await run('X-Other')).stdout).toContain('reads another header than X-Other')
})

it.each([
  [['--as', 'customerio'], 'Did you mean customer.io?'],
  [
    ['--as', 'segment-actions', '--method', 'DELETE'],
    'segment-actions does not send DELETE. Pass one of POST, PUT, PATCH.',
  ],
  [['--method', 'PUT'], 'segment does not send PUT.'],
  [['--key-header', 'x-key'], 'segment signs, and sends no key.'],
  [['--as', 'rudderstack', '--key-header', 'a b'], '--key-header must be the name of a header'],
])('%j is wrong usage', async (args, text) => {
  const { code, stderr } = await hookline(['send', 'track', '--to', 'http://localhost:1/', ...args], { env })
  expect(code).toBe(2)
  expect(stderr).toContain(text)
})

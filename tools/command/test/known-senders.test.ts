/** `hookline send` and `hookline check` in the form of each known sender, against receivers that are set up for it. */

import { createServer } from 'node:http'
import { join } from 'node:path'
import { createReceiver, type Delivery, type ReceivedMessage, type ReceiverOptions } from 'hookline'
import { serve } from 'hookline/node'
import { fixtures, type KnownSender } from 'hookline/testing'
import { describe, expect, it } from 'vitest'
import { createFiles, hookline, jsonLines, like, listenHere } from './command.ts'

const secret = 'a shared secret'
const env = { HOOKLINE_SECRET: secret }
const key: ReceiverOptions = { header: { name: 'x-webhook-key', value: secret } }
const methods = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

async function start(options: ReceiverOptions) {
  const seen: [ReceivedMessage, Delivery][] = []
  const receiver = createReceiver({ onError: () => {}, custom: true, methods, ...options } as ReceiverOptions)
  receiver.on('*', (message, delivery) => void seen.push([message, delivery]))
  return { seen, url: `${await listenHere(createServer(serve(receiver, { path: '/webhooks' })))}/webhooks` }
}

describe.each<[KnownSender, ReceiverOptions, method: string, verified: string, own: string]>([
  ['segment-actions', { secret }, 'PUT', 'signature', 'bytes-float'],
  ['customer.io', { secret, batches: true }, 'DELETE', 'signature', 'batch'],
  ['rudderstack', key, 'PATCH', 'header', 'key-longer'],
])('--as %s', (as, options, method, verified, own) => {
  const send = (url: string, ...args: string[]) => hookline(['send', ...args, '--as', as, '--to', url], { env })

  it('sends messages in its form, and any JSON, by a method of its own', async () => {
    const { url, seen } = await start(options)
    const { code } = await send(url, 'track', '--set', 'properties.total=12', '--method', method, '--count', '2')
    for (const type of Object.keys(fixtures)) await send(url, type)
    await send(url, join(await createFiles({ 'order.json': '{"order": 7}' }), 'order.json'))
    const [[message, delivery], [copy]] = seen as [(typeof seen)[0], (typeof seen)[0]]
    const own = { type: 'track', properties: { total: 12 }, channel: 'server' }
    expect([code, message, delivery]).toMatchObject([0, own, { method, verified }])
    expect(copy.messageId).not.toBe(message.messageId)
    expect(seen.slice(2).map(([{ type }]) => type)).toEqual([...Object.keys(fixtures), 'custom'])
  })

  it('sends proofs that are refused', async () => {
    const { url, seen } = await start(options)
    for (const way of ['no-signature', 'wrong-secret', 'bad-signature']) {
      expect(await send(url, 'track', '--tamper', way)).toMatchObject({ code: 1, stdout: like(/^401/) })
    }
    expect(seen).toEqual([])
  })

  it('checks by cases of its own, and a receiver that is set up for it passes', async () => {
    const { url } = await start(options)
    const { code, stdout } = await hookline(['check', url, '--as', as, '--method', method, '--json'], { env })
    const results = jsonLines<{ id: string; result: string }>(stdout)
    const ids = results.map(({ id }) => id)
    expect([code, ...results.filter(({ result }) => result !== 'pass')]).toEqual([0])
    expect(ids).toEqual(expect.arrayContaining([own, 'mapped-body', 'type-alias']))
    expect(ids.includes('signature-forged')).toBe(verified === 'signature')
  })
})

it('check --as rudderstack fails an endpoint that compares the beginning of the header, or reads another', async () => {
  const server = createServer((request, response) => {
    const isKnown = String(request.headers['x-key']).startsWith(secret)
    request.resume().on('end', () => response.writeHead(isKnown ? 200 : 401).end())
  })
  const args = ['check', await listenHere(server), '--as', 'rudderstack', '--only', 'plain-message,key-longer']
  const found = await hookline([...args, '--key-header', 'X-Key'], { env })
  const other = await hookline([...args, '--key-header', 'X-Other'], { env })
  expect(found).toMatchObject({ code: 1, stdout: like(/^fail {2}key-longer/m) })
  expect(other).toMatchObject({ code: 1, stdout: like(/^fail {2}plain-message.*X-Other/m) })
})

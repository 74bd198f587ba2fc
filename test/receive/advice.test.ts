/** What errors advise: each mistake is made, then its advice is followed, and that is the end of the error. */

import Fastify from 'fastify'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { serve as serveFastify } from '../../adapters/fastify.ts'
import { serve as serveNode } from '../../adapters/node.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { deliver, secret, setUp } from '../support/receive.ts'

const { track } = fixtures
const handler = () => {}
const mistake = <T>(value: unknown): T => value as T

const schema = z.object({})

const mistakes: Readonly<Record<string, readonly [make: () => unknown, message: string, follow: () => unknown]>> = {
  'no secret': [
    () => createReceiver({ secret: process.env.NOT_SET_ANYWHERE }),
    '`secret` is required. Got undefined. Pass the shared secret of the destination; a function that returns it, where it is not set yet when this module is loaded; or `allowUnsigned: true` to accept messages from anyone.',
    () => [
      createReceiver({ secret }),
      createReceiver({ secret: () => process.env.NOT_SET_ANYWHERE }),
      createReceiver({ allowUnsigned: true }),
    ],
  ],
  'the bytes of a file as the secret': [
    () => createReceiver({ secret: mistake(Buffer.from(secret)) }),
    '`secret` must be text, a list of it, a function or { source, secrets }. Got bytes. Pass text, or the function that reads it.',
    () => [createReceiver({ secret: Buffer.from(secret).toString() }), createReceiver({ secret: async () => secret })],
  ],
  'a secret that is still to come': [
    () => createReceiver({ secret: mistake(Promise.resolve(secret)) }),
    '`secret` must be text, a list of it, a function or { source, secrets }. Got a promise. Pass text, or the function that reads it.',
    () => createReceiver({ secret: () => Promise.resolve(secret) }),
  ],
  'a queue that is not created': [
    () => createReceiver({ secret, inbox: mistake(memoryQueue) }),
    "`inbox` must be a queue or { queue, … }. Got a function. Pass memoryQueue({ name: 'inbox' }) or another queue.",
    () => createReceiver({ secret, inbox: memoryQueue({ name: 'inbox' }) }),
  ],
  'a store that is not created': [
    () => createReceiver({ secret, dedupe: { store: mistake(memoryDedupe) } }),
    '`dedupe.store` must be a store. Got a function. Pass memoryDedupe().',
    () => createReceiver({ secret, dedupe: { store: memoryDedupe() } }),
  ],
  'retries that are no list': [
    () => createReceiver({ secret, inbox: { queue: memoryQueue(), retries: mistake(5) } }),
    '`inbox.retries` must be a list of milliseconds or a function. Got a number. Pass a list, for example [1000, 30000].',
    () => createReceiver({ secret, inbox: { queue: memoryQueue(), retries: [1000, 30000] } }),
  ],
  'an event in place of a type': [
    () => createReceiver({ secret }).on(mistake('page'), 'Home', handler),
    "`on: type` must be 'track' when an event is passed. Got 'page'. Pass 'track', or leave the event out.",
    () => createReceiver({ secret }).on('track', 'Home', handler).on('page', handler),
  ],
  'handlers of an audience under another name': [
    () => createReceiver({ secret }).onAudience('Trial Users', mistake({ entred: handler })),
    '`entred` is not an option. Did you mean `entered`? Valid options: entered, exited.',
    () => createReceiver({ secret }).onAudience('Trial Users', { entered: handler }),
  ],
  'traits of a type that has none': [
    () => createReceiver({ secret, traits: mistake<object>({ track: {} }) }),
    '`traits.track` is not an option. Valid options: identify, group.',
    () => createReceiver({ secret, traits: { group: schema } }),
  ],
  'a schema that is none': [
    () => createReceiver({ secret, events: { Signup: mistake<typeof schema>({ parse: handler }) } }),
    "`events['Signup']` must implement Standard Schema. Got an object. Pass a schema of zod, valibot, arktype or another library that implements it.",
    () => createReceiver({ secret, events: { Signup: schema } }),
  ],
  'one schema in place of schemas by name': [
    () => createReceiver({ secret, events: mistake<Record<string, typeof schema>>(schema) }),
    '`events` must be a plain object of schemas. Got a schema. Pass { name: schema }.',
    () => createReceiver({ secret, events: { Signup: schema } }),
  ],
  'a relative path': [
    () => serveNode(createReceiver({ secret }), { path: 'webhooks' }),
    "`path` must begin with '/' and hold no '?' and no '#'. Got 'webhooks'. Pass a path that begins with '/', for example '/webhooks'.",
    () => serveNode(createReceiver({ secret }), { path: '/webhooks' }),
  ],
  'the options in place of a receiver': [
    () => serveNode(mistake({ secret })),
    '`serve: endpoint` must be a receiver or a collector. Got an object. Pass what createReceiver() or createCollector() returns.',
    () => serveNode(createReceiver({ secret })),
  ],
  'the options of a route, given to the serve of Fastify': [
    () => (serveFastify as (...given: unknown[]) => unknown)(createReceiver({ secret }), { path: '/webhooks' }),
    "`serve` takes an endpoint. Got 2 arguments. Pass options to register: app.register(serve(receiver), { path: '/webhooks' }).",
    () => Fastify().register(serveFastify(createReceiver({ secret })), { path: '/webhooks' }),
  ],
}

describe('a TypeError', () => {
  it.each(Object.entries(mistakes))('for %s', (_mistake, [make, message, follow]) => {
    expect(make).toThrow(TypeError)
    expect(make).toThrow(message)
    expect(follow).not.toThrow()
  })

  it.each([
    ['inbox.key', () => setUp({ inbox: { queue: memoryQueue(), key: () => mistake(5) } })],
    ['dedupe.key', () => setUp({ dedupe: { store: memoryDedupe(), key: () => mistake(5) } })],
  ])('is the cause when %s returns no key', async (name, create) => {
    const { receiver, errors } = create()
    expect(await deliver(receiver, track)).toMatchObject({ status: 500, error: { code: 'internal' } })
    expect(errors[0]?.cause).toEqual(
      new TypeError(
        `\`${name}()\` must return a non-empty string. Got a number. Return what identifies the message, for example an order number.`,
      ),
    )
  })
})

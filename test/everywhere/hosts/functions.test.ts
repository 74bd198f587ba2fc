/** The examples of functions that take messages from a queue, with events of the shapes that the services document. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { freePort } from '../../support/redis.ts'
import { openProjects } from './project.ts'

const SECRET = 'the secret of the functions'
const LAMBDA = fileURLToPath(new URL('programs/lambda.ts', import.meta.url))
const FAILING = new URL('programs/failing.ts', import.meta.url)
const ENV = { HOOKLINE_SECRET: SECRET, NODE_OPTIONS: `--import ${FAILING.href}` }

const { copy, run } = openProjects()

interface Message {
  readonly user: string
  readonly body: Buffer
  readonly signature: string
}

function messageOf(user: string, fields: object = {}, secret = SECRET): Message {
  const { bytes, headers } = signedRequest({ ...fixtures.track, userId: user, ...fields }, secret)
  return { user, body: Buffer.from(bytes), signature: headers['x-signature'] ?? '' }
}

const text = `é + & % "${'x'.repeat(400_000)}"`
const anna = messageOf('anna')
const bert = messageOf('bert', { properties: { text } })
const eve = messageOf('eve')
const mallory = messageOf('mallory', {}, 'another secret')
const trudy = { ...messageOf('trudy'), signature: '' }
const oscar = messageOf('oscar', { event: '' })

/** https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html */
const sqsEvent = (messages: readonly Message[]) => ({
  Records: messages.map(({ user, body, signature }) => ({
    messageId: `id-of-${user}`,
    body: body.toString(),
    messageAttributes: signature === '' ? {} : { 'x-signature': { stringValue: signature, dataType: 'String' } },
  })),
})

/** https://docs.aws.amazon.com/eventbridge/latest/userguide/aws-events.html */
const eventBridgeEvent = ({ body, signature }: Message) => ({
  detail: { headers: signature === '' ? {} : { 'x-signature': signature }, body: body.toString('base64') },
})

/** https://cloud.google.com/pubsub/docs/push */
const push = ({ body, signature }: Message) => ({
  message: {
    data: body.toString('base64'),
    ...(signature !== '' && { attributes: { 'x-signature': signature } }),
    messageId: '2070443601311540',
    publishTime: '2021-02-26T19:13:55.749Z',
  },
  subscription: 'projects/myproject/subscriptions/mysubscription',
})

/** Builds an example, calls a handler of it with events, and waits until the process ends by itself. */
async function call(example: string, name: string, events: readonly object[]) {
  const project = copy(example)
  const build = run(project, ['tsc'])
  expect(await build.exit, build.output).toBe(0)
  const file = join(project, 'events.json')
  writeFileSync(file, JSON.stringify(events))
  const child = run(project, ['node', LAMBDA, 'dist/index.js', name, file], ENV)
  expect(await child.exit, child.output).toBe(0)
  const outcomes = [...child.stdout.matchAll(/^outcome (.+)$/gm)].map(([, json = '']) => JSON.parse(json))
  return { outcomes, output: child.output, handled: handledIn(child.output) }
}

function handledIn(output: string): string[] {
  return [...output.matchAll(/^track \{[^}]*? userId: '(\w+)'/gm)].map(([, user = '']) => user)
}

const failures = (...users: readonly string[]) => ({
  result: { batchItemFailures: users.map((user) => ({ itemIdentifier: `id-of-${user}` })) },
})

describe.concurrent('functions behind a queue', () => {
  test('SQS: only a record whose handler fails comes back', async () => {
    const all = [anna, mallory, trudy, oscar, eve, bert]
    const events = [sqsEvent(all), sqsEvent([anna])]
    const { outcomes, handled, output } = await call('sqs', 'handler', events)

    expect(outcomes).toEqual([failures('eve'), failures()])
    expect(handled.sort()).toEqual(['anna', 'anna', 'bert'])
    for (const code of ['signature_mismatch', 'signature_missing', 'message_invalid', 'handler_failed']) {
      expect(output).toContain(code)
    }
  })

  test('SQS, FIFO: all from the first failure on come back', async () => {
    const events = [sqsEvent([anna, mallory, bert]), sqsEvent([mallory, anna, eve, oscar, bert])]
    const { outcomes, handled } = await call('sqs', 'fifo', events)
    expect(outcomes).toEqual([failures(), failures('eve', 'oscar', 'bert')])
    expect(handled).toEqual(['anna', 'bert', 'anna'])
  })

  test('EventBridge: only an event whose handler fails comes back', async () => {
    const events = [anna, mallory, trudy, oscar, eve, bert].map(eventBridgeEvent)
    const { outcomes, handled } = await call('eventbridge', 'handler', events)
    const done = { result: null }
    expect(outcomes).toEqual([done, done, done, done, { code: 'handler_failed' }, done])
    expect(handled).toEqual(['anna', 'bert'])
  })

  test('Pub/Sub: only a message whose handler fails comes back', async () => {
    const port = await freePort()
    const env = { ...ENV, PORT: `${port}` }
    const server = run(copy('pubsub'), ['functions-framework', '--target=webhooks'], env)
    const post = (body: object) => {
      const headers = { 'content-type': 'application/json' }
      return fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body: JSON.stringify(body) })
    }
    await expect
      .poll(() =>
        post(push(anna)).then(
          ({ status }) => status,
          () => 'not up',
        ),
      )
      .toBe(204)

    const statuses: number[] = []
    for (const message of [mallory, trudy, oscar, eve, bert]) statuses.push((await post(push(message))).status)
    expect(statuses).toEqual([204, 204, 204, 500, 204])
    await server.printed(/userId: 'bert'/)
    expect(handledIn(server.output)).toEqual(['anna', 'bert'])
    server.kill('SIGTERM')
    await server.exit
  })
})

/** The examples of functions that take messages from a queue, with events of the shapes that the services document. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { freePort } from '../../support/redis.ts'
import { openProjects } from './project.ts'

const SECRET = 'the secret of the functions'
const [LAMBDA, FAILING] = ['lambda', 'failing'].map((name) => new URL(`programs/${name}.ts`, import.meta.url)) as [
  URL,
  URL,
]
const ENV = { HOOKLINE_SECRET: SECRET, NODE_OPTIONS: `--import ${FAILING.href}` }

const { copy, run } = openProjects()

interface Message {
  readonly user: string
  readonly body: Buffer
  readonly signature: string
}

function messageOf(
  user: string,
  { secret = SECRET, ...fields }: { secret?: string; [name: string]: unknown } = {},
): Message {
  const { bytes, headers } = signedRequest({ ...fixtures.track, userId: user, ...fields }, secret)
  return { user, body: Buffer.from(bytes), signature: headers['x-signature'] ?? '' }
}

const text = `é + & % "${'x'.repeat(400_000)}"`
const anna = messageOf('anna')
const bert = messageOf('bert', { properties: { text } })
const eve = messageOf('eve')
const mallory = messageOf('mallory', { secret: 'another secret' })
const trudy = { ...messageOf('trudy'), signature: '' }
const oscar = messageOf('oscar', { event: '' })

/** https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html */
function sqsEvent(messages: readonly Message[], queue = 'webhooks') {
  const Records = messages.map(({ user, body, signature }, index) => ({
    messageId: `id-of-${user}`,
    receiptHandle: 'AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a',
    body: body.toString(),
    attributes: {
      ApproximateReceiveCount: '1',
      SentTimestamp: '1545082649183',
      SenderId: 'AIDAIENQZJOLO23YVJ4VO',
      ApproximateFirstReceiveTimestamp: '1545082649185',
      ...(queue.endsWith('.fifo') && {
        SequenceNumber: `1884949646838833${index}`,
        MessageGroupId: '1',
        MessageDeduplicationId: `${index}`,
      }),
    },
    messageAttributes: signature === '' ? {} : { 'x-signature': sqsAttribute(signature) },
    md5OfBody: 'e4e68fb7bd0e697a0ae8f1bb342846b3',
    eventSource: 'aws:sqs',
    eventSourceARN: `arn:aws:sqs:us-east-2:123456789012:${queue}`,
    awsRegion: 'us-east-2',
  }))
  return { Records }
}

function sqsAttribute(stringValue: string) {
  return { stringValue, stringListValues: [], binaryListValues: [], dataType: 'String' }
}

/** https://docs.aws.amazon.com/eventbridge/latest/userguide/aws-events.html */
function eventBridgeEvent({ body, signature }: Message) {
  return {
    version: '0',
    id: '6a7e8feb-b491-4cf7-a9f1-bf3703467718',
    'detail-type': 'webhook',
    source: 'shop.webhooks',
    account: '123456789012',
    time: '2026-02-22T18:43:48Z',
    region: 'us-east-2',
    resources: [],
    detail: { headers: signature === '' ? {} : { 'x-signature': signature }, body: body.toString('base64') },
  }
}

/** https://cloud.google.com/pubsub/docs/push */
function push({ body, signature }: Message) {
  const [messageId, publishTime] = ['2070443601311540', '2021-02-26T19:13:55.749Z']
  const message = {
    data: body.toString('base64'),
    messageId,
    message_id: messageId,
    publishTime,
    publish_time: publishTime,
  }
  return {
    message: signature === '' ? message : { ...message, attributes: { 'x-signature': signature } },
    subscription: 'projects/myproject/subscriptions/mysubscription',
  }
}

/** Builds an example, calls a handler of it with events, and waits until the process ends by itself. */
async function call(example: string, name: string, events: readonly object[]) {
  const project = copy(example)
  const build = run(project, ['tsc'])
  expect(await build.exit, build.output).toBe(0)
  const file = join(project, 'events.json')
  writeFileSync(file, JSON.stringify(events))
  const child = run(project, ['node', fileURLToPath(LAMBDA), 'dist/index.js', name, file], ENV)
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
    const events = [
      [anna, mallory, bert],
      [mallory, anna, eve, oscar, bert],
    ].map((all) => sqsEvent(all, 'webhooks.fifo'))
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
    const server = run(copy('pubsub'), ['functions-framework', '--target=webhooks'], {
      ...ENV,
      PORT: `${port}`,
    })
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

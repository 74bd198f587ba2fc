import { describe, expect, it } from 'vitest'
import { createReceiver, type Delivery, type Message } from '../../src/index.ts'
import { idOfKey } from '../../src/protocol/id.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { fixtures, manualClock, signedRequest } from '../../src/testing.ts'
import { hear } from '../support/channel.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, schemaOf, secret } from '../support/receive.ts'

const SECRETS: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ...['authorization', 'proxy-authorization', 'cookie', 'x-api-key', 'x-functions-key', 'ocp-apim-subscription-key'],
    ...['x-auth-key', 'x-access-key', 'x-private-key', 'x-shared-key', 'x-vercel-protection-bypass', 'x-oidc', 'x-jwt'],
    ...['x-amz-security-token', 'x-secret', 'x-assertion', 'x-credential', 'x-password', 'x-session-id', 'x-apikey'],
  ].map((name) => [name, 'hunter2']),
)

describe('an inbox', () => {
  it('shows the same handlers the same message and delivery as without one, but the headers that hold secrets', async () => {
    const schema = schemaOf((value) => ({ value: { ...(value as object), total: '39' } }))
    const seen: { message: Message; delivery: Delivery }[] = []
    const clock = manualClock()
    const options = { secret: ['another', secret], clock, events: { 'Order Completed': schema } } as const
    const inline = createReceiver(options)
    const stored = createReceiver({ ...options, inbox: memoryQueue({ clock }) })
    for (const receiver of [inline, stored]) {
      receiver.on('track', 'Order Completed', (message, delivery) =>
        seen.push({ message: message as Message, delivery }),
      )
      const { body, headers } = signedRequest(JSON.stringify(fixtures.track), secret)
      await receiver.receive(Buffer.from(body), { ...headers, ...SECRETS, 'X-Trace': 'é 1', 'idempotency-key': 'k' })
    }
    await clock.advance(5000)
    stored.start()
    await clock.advance(0)
    const [a, b] = seen.map(({ message, delivery }) => {
      const { id, bodySource, receivedAt, verified, secretIndex, headers, signal } = delivery
      const bytes = Buffer.from(delivery.bytes).toString()
      return { message, id, bodySource, receivedAt, verified, secretIndex, headers, bytes, aborted: signal.aborted }
    })
    expect(a?.secretIndex).toBe(1)
    expect(a?.headers).toMatchObject(SECRETS)
    const kept = Object.entries(a?.headers ?? {}).filter(([name]) => !(name in SECRETS))
    expect(b).toEqual({ ...a, headers: Object.fromEntries(kept) })
  })

  it('goes by a key of yours, where there is a message, from the first event on', async () => {
    const events = hear<{ readonly delivery: Delivery }>('hookline:received')
    const keys: unknown[] = []
    const key = (message: Message, delivery: Delivery) => {
      keys.push([message.type, delivery.verified])
      return String(message.messageId)
    }
    const { receiver, queue } = setUpInbox({ key })
    for (const userId of ['a', 'b']) await deliver(receiver, { ...fixtures.page, userId, messageId: 'same' })
    expect((await queue.counts()).waiting).toBe(1)
    await deliver(receiver, '{}')
    expect((await queue.counts()).waiting).toBe(2)
    expect(keys).toEqual(Array(2).fill(['page', 'signature']))
    expect(events.map(({ delivery }) => delivery.id)).toEqual(Array(2).fill(idOfKey('same')))
  })

  it.each([
    ['not JSON', 'body_not_json', '{'],
    ['no message', 'message_invalid', { ...fixtures.track, event: undefined }],
    ['of a type that is none', 'message_type_unknown', { type: 'purchase', userId: 'u' }],
  ])('stores what is authentic and %s, answers 200, and says so', async (_what, code, body) => {
    const { receiver, clock, queue, errors } = setUpInbox()
    const seen: unknown[] = []
    receiver.on('*', (message) => seen.push(message))
    const answer = { ok: false, status: 200, body: '{"ok":true}', error: { code } }
    expect(await deliver(receiver, body)).toMatchObject(answer)
    expect(errors).toMatchObject([{ code }])
    expect((await queue.counts()).waiting).toBe(1)
    receiver.start()
    await clock.advance(0)
    expect(seen).toEqual([])
    const [letter] = await receiver.deadLetters()
    expect(letter).toMatchObject({ reason: code, attempts: 1, message: undefined, error: { code, causes: [] } })
    expect(letter?.error.path).toBe(
      code === 'message_invalid' ? 'event' : code === 'message_type_unknown' ? 'type' : undefined,
    )
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    expect(Buffer.from(letter?.bytes ?? []).toString()).toBe(text)
    expect(JSON.parse(JSON.stringify(letter))).toMatchObject({ id: letter?.id, bytes: text, reason: code })
  })

  it.each([
    ['is forged', {}, '{', 401],
    ['is unsigned and no JSON', { allowUnsigned: true }, '{', 400],
    ['is unsigned and invalid', { allowUnsigned: true }, '{}', 422],
  ])('refuses what %s, and stores nothing of it', async (_what, options, body, status) => {
    const { receiver, queue } = setUpInbox({}, options)
    expect(await deliver(receiver, body, 'forged')).toMatchObject({ ok: false, status })
    expect((await queue.counts()).waiting).toBe(0)
  })
})

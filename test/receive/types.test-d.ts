import * as v from 'valibot'
import { expectTypeOf, test } from 'vitest'
import { z } from 'zod'
import {
  type AliasMessage,
  type CustomMessage,
  createReceiver,
  type DeadLetterMessage,
  type DeleteMessage,
  type Delivery,
  type Fields,
  type Forgotten,
  type GroupMessage,
  type Handler,
  type HooklineError,
  type IdentifyMessage,
  type Message,
  type MessageBatch,
  type MessageOf,
  type MessageType,
  type PageMessage,
  parse,
  type Received,
  type ReceivedElement,
  type Receiver,
  type ScreenMessage,
  type StoredMessage,
  type TrackMessage,
} from '../../src/index.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createDestination } from '../../src/sender.ts'

const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })

interface Order {
  total: number
}

const typed = createReceiver({
  secret: ['new', 'old'],
  events: {
    'Order Completed': z.object({ total: z.coerce.number() }),
    'Trial Started': v.object({ days: v.number() }),
    'Order Refunded': z.object({ total: z.number() }) as z.ZodType<Order>,
  },
  traits: { identify: z.object({ plan: z.enum(['free', 'paid']) }), group: v.object({ seats: v.number() }) },
})

test('a message narrows on its type', () => {
  const message = parse(new Uint8Array())
  expectTypeOf(message).toEqualTypeOf<Message>()
  if (message.type === 'track') expectTypeOf(message).toEqualTypeOf<TrackMessage>()
  if (message.type === 'track') expectTypeOf(message.event).toEqualTypeOf<string>()
  if (message.type === 'alias') expectTypeOf(message['Previous ID']).toEqualTypeOf<string>()
  if (message.type === 'delete') expectTypeOf(message.userId).toEqualTypeOf<string>()
  if (message.type === 'page') expectTypeOf(message.userId).toEqualTypeOf<string | null | undefined>()
})

test('on by type gives the message of that type', () => {
  receiver
    .on('page', (message) => expectTypeOf(message).toEqualTypeOf<PageMessage>())
    .on('screen', (message) => expectTypeOf(message).toEqualTypeOf<ScreenMessage>())
    .on('identify', (message) => expectTypeOf(message).toEqualTypeOf<IdentifyMessage>())
    .on('track', (message) => expectTypeOf(message).toEqualTypeOf<TrackMessage>())
    .on('alias', (message) => expectTypeOf(message).toEqualTypeOf<AliasMessage>())
    .on('group', (message) => expectTypeOf(message).toEqualTypeOf<GroupMessage>())
    .on('delete', (message) => expectTypeOf(message).toEqualTypeOf<DeleteMessage>())
    .on('*', (message, delivery) => {
      expectTypeOf(message).toEqualTypeOf<Message>()
      expectTypeOf(delivery).toEqualTypeOf<Delivery>()
    })
})

test('on by event gives what its schema puts out', () => {
  typed
    .on('track', 'Order Completed', (message) => {
      expectTypeOf(message.event).toEqualTypeOf<'Order Completed'>()
      expectTypeOf(message.properties).toEqualTypeOf<{ total: number }>()
    })
    .on('track', 'Trial Started', (message) => expectTypeOf(message.properties.days).toEqualTypeOf<number>())
    .on('track', 'No Schema', (message) => expectTypeOf(message.properties).toEqualTypeOf<Fields | undefined>())
    .on('track', 'Known as text' as string, (message) => expectTypeOf(message.event).toEqualTypeOf<string>())
    .on('identify', (message) => expectTypeOf(message.traits.plan).toEqualTypeOf<'free' | 'paid'>())
    .on('group', (message) => expectTypeOf(message.traits.seats).toEqualTypeOf<number>())
})

test('on by a list of types gives their union, by a widened list every message', () => {
  receiver.on(['identify', 'group'], (message) => expectTypeOf(message).toEqualTypeOf<IdentifyMessage | GroupMessage>())
  const types: MessageType[] = ['identify', 'group']
  receiver.on(types, (message) => expectTypeOf(message).toEqualTypeOf<Message>())
})

test('a handler for every message fits everywhere', () => {
  const handler = (message: Message): void => void message
  receiver.on('track', handler).on(['page', 'screen'], handler).on('*', handler).off('track', handler)
  const ofTrack = (message: TrackMessage): Promise<string> => Promise.resolve(message.event)
  receiver.on('track', ofTrack).off('track', ofTrack)
})

test('onAudience gives an identify or a track', () => {
  receiver.onAudience('High Value Users', {
    entered: (message) => expectTypeOf(message).toEqualTypeOf<IdentifyMessage | TrackMessage>(),
  })
})

test('onUnplanned gets a track message and its count, whatever the schemas', () => {
  createReceiver({
    secret: 's',
    events: { 'Order Completed': z.object({ total: z.number() }) },
    onUnplanned(message, unplanned) {
      expectTypeOf(message).toEqualTypeOf<TrackMessage>()
      expectTypeOf(unplanned.count).toEqualTypeOf<number>()
    },
  }).on('track', 'Order Completed', (message) => expectTypeOf(message.properties.total).toEqualTypeOf<number>())
})

test('what is listed, dropped and forgotten is typed', () => {
  expectTypeOf(receiver.deadLetters).returns.resolves.items.toEqualTypeOf<DeadLetterMessage>()
  expectTypeOf(receiver.close).returns.resolves.items.toEqualTypeOf<StoredMessage>()
  receiver.drop(['id'])
  receiver.drop('all')
  for (const reason of ['crashed', 'handler_failed', 'lease_lapsed'] as const) receiver.drop({ reason })
  // @ts-expect-error a reason of a destination
  receiver.drop({ reason: 'refused' })
  // @ts-expect-error a word for all that is not one
  receiver.drop('every')
  const destination = createDestination({ webhooks: [{ url: 'http://localhost' }] })
  destination.drop({ reason: 'refused' })
  // @ts-expect-error a reason of a receiver
  destination.drop({ reason: 'handler_failed' })
  expectTypeOf(receiver.forget).parameter(0).toEqualTypeOf<string | readonly string[]>()
  expectTypeOf(receiver.forget).returns.resolves.toEqualTypeOf<Forgotten>()
  expectTypeOf(destination.forget).returns.resolves.toEqualTypeOf<Forgotten>()
})

test('a receiver with schemas is a Receiver, whose handlers get fields of unknown values', () => {
  const receivers: Receiver[] = [receiver, typed]
  const register = (any: Receiver) =>
    any
      .on('track', 'Order Completed', ({ properties }) => expectTypeOf(properties).toEqualTypeOf<Fields | undefined>())
      .on('identify', ({ traits }) => expectTypeOf(traits).toEqualTypeOf<Fields | undefined>())
      .on('page', (message) => expectTypeOf(message).toEqualTypeOf<PageMessage>())
      .on('*', (message) => expectTypeOf(message).toEqualTypeOf<Message | CustomMessage>())
  receivers.forEach(register)
  register(typed)
})

test('MessageOf is what a handler gets, in another file', () => {
  type Ours = typeof typed
  expectTypeOf<MessageOf<Ours, 'track', 'Order Completed'>>().toEqualTypeOf<
    TrackMessage<'Order Completed', { total: number }>
  >()
  expectTypeOf<MessageOf<Ours, 'track', 'Order Refunded'>['properties']>().toEqualTypeOf<Order>()
  expectTypeOf<MessageOf<Ours, 'track', 'No Schema'>['properties']>().toEqualTypeOf<Fields | undefined>()
  expectTypeOf<MessageOf<Ours, 'track'>>().toEqualTypeOf<TrackMessage>()
  expectTypeOf<MessageOf<Ours, 'identify'>>().toEqualTypeOf<IdentifyMessage<{ plan: 'free' | 'paid' }>>()
  expectTypeOf<MessageOf<Ours, 'page' | 'group'>>().toEqualTypeOf<PageMessage | GroupMessage<{ seats: number }>>()
  expectTypeOf<MessageOf<typeof receiver, 'group'>>().toEqualTypeOf<GroupMessage>()
  expectTypeOf<MessageOf<Receiver, 'track', 'Order Completed'>['properties']>().toEqualTypeOf<Fields | undefined>()
  expectTypeOf<MessageOf<Ours, 'page', 'Order Completed'>>().toBeNever()

  const record: Handler<MessageOf<Ours, 'track', 'Order Completed'>> = ({ properties }, { id }) => properties.total + id
  const store = async (message: MessageOf<Ours, 'identify'>) => message.traits.plan
  typed.on('track', 'Order Completed', record).off('track', 'Order Completed', record).on('identify', store)
})

test('a handler has a name by an option', () => {
  typed
    .on('track', 'Order Completed', (message) => message.properties.total, { name: 'crm' })
    .on('identify', (message, { verified }) => [message.traits.plan, verified], {})
    .onAudience('vip', { entered: (message) => message.type }, { name: 'vip' })
  // @ts-expect-error an option that is none
  typed.on('track', () => {}, { nam: 'crm' })
  // @ts-expect-error no text
  typed.on('track', () => {}, { name: 1 })
  // @ts-expect-error no boolean
  createReceiver({ secret: 's', batches: 'signed' })
})

test('a result says what became of each element of a batch', async () => {
  const { elements, ok } = await typed.receive(new Uint8Array(), {})
  expectTypeOf(elements).toEqualTypeOf<readonly ReceivedElement<Message>[] | undefined>()
  expectTypeOf(ok).toEqualTypeOf<boolean>()
  for (const element of elements ?? []) {
    if (element.ok) expectTypeOf(element.message).toEqualTypeOf<Message>()
    else expectTypeOf(element.error).toEqualTypeOf<HooklineError>()
  }
})

test('MessageOf of several events narrows on the event', () => {
  type Either = MessageOf<typeof typed, 'track', 'Order Completed' | 'Trial Started'>
  const record = (message: Either): number =>
    message.event === 'Trial Started' ? message.properties.days : message.properties.total
  typed.on('track', 'Order Completed', record).on('track', 'Trial Started', record)
  for (const event of ['Order Completed', 'Trial Started'] as const) typed.on('track', event, record)
})

test('mistakes do not compile', () => {
  const types: MessageType[] = ['track', 'page']
  // @ts-expect-error
  receiver.on('track', (message) => message.traits)
  // @ts-expect-error
  receiver.on('page', (message) => message.event)
  // @ts-expect-error
  typed.on('track', 'Order Completed', (message) => message.properties.totel)
  // @ts-expect-error
  typed.on('track', 'Order Completed', (message) => message.properties.total.trim())
  // @ts-expect-error
  receiver.on(['identify', 'group'], (message) => message.groupId)
  // @ts-expect-error
  receiver.on(types, (message) => message.event)
  // @ts-expect-error
  receiver.on('*', (message) => message.event)
  // @ts-expect-error
  receiver.on('tracks', () => {})
  // @ts-expect-error
  receiver.on('page', 'Home', () => {})
  receiver.on('track', (message) => {
    // @ts-expect-error
    message.event = 'x'
  })
  // @ts-expect-error
  typed.on('track', 'Order Completed', (message: MessageOf<typeof typed, 'identify'>) => message)
  // @ts-expect-error
  createReceiver({ secert: 's' })
  // @ts-expect-error
  createReceiver({ secret: 's', events: { e: {} } })
})

test('with strictEvents, handlers are for the events with a schema only', () => {
  const events = { 'Order Completed': z.object({ total: z.number() }) }
  const strict = createReceiver({ secret: 's', events, strictEvents: true })
  strict
    .on('track', 'Order Completed', ({ properties }) => expectTypeOf(properties).toEqualTypeOf<{ total: number }>())
    .on('track', ({ event }) => expectTypeOf(event).toEqualTypeOf<string>())
    .off('track', 'Order Completed', () => {})
  expectTypeOf<MessageOf<typeof strict, 'track', 'Order Completed'>['properties']>().toEqualTypeOf<{ total: number }>()
  // @ts-expect-error
  strict.on('track', 'Order Complete', () => {})
  // @ts-expect-error
  strict.onBatch('track', 'Order Complete', () => {})
  const receivers: Receiver[] = [strict]
  for (const each of receivers) each.on('track', 'Order Complete', () => {})

  createReceiver({ secret: 's', events, strictEvents: false }).on('track', 'Order Complete', () => {})
  createReceiver({ secret: 's', events, strictEvents: Math.random() > 0.5 }).on('track', 'Order Complete', () => {})
})

test('a custom message is what its schema makes of it', async () => {
  const any = createReceiver({ secret: 's', custom: true })
  any
    .on('custom', (message) => expectTypeOf(message).toEqualTypeOf<CustomMessage>())
    .on('*', (message) => expectTypeOf(message).toEqualTypeOf<Message | CustomMessage>())
    .on('track', (message) => expectTypeOf(message).toEqualTypeOf<TrackMessage>())
  expectTypeOf(any.receive).returns.resolves.toEqualTypeOf<Received>()

  const order = createReceiver({ secret: 's', custom: z.object({ total: z.coerce.number() }), events: {} })
  order
    .on('custom', ({ body }) => expectTypeOf(body).toEqualTypeOf<{ total: number }>())
    .on(['custom', 'page'], (message) => (message.type === 'page' ? message.name : message.body.total))
  expectTypeOf<MessageOf<typeof order, 'custom'>>().toEqualTypeOf<CustomMessage<{ total: number }>>()

  const maybe = createReceiver({ secret: 's', custom: Math.random() > 0.5 })
  maybe.on('custom', ({ body }) => expectTypeOf(body).toBeUnknown())
  const receivers: Receiver[] = [any, order, maybe]
  for (const each of receivers) each.on('custom', ({ body }) => expectTypeOf(body).toBeUnknown())

  // @ts-expect-error a receiver without the option
  receiver.on('custom', () => {})
  // @ts-expect-error neither true nor a schema
  createReceiver({ secret: 's', custom: 'yes' })
  receiver.on('*', (message) => expectTypeOf(message).toEqualTypeOf<Message>())
})

test('a field of all messages can be read of any that is received', () => {
  const inbox = { queue: memoryQueue(), key: (message: Message) => message.messageId ?? '' }
  createReceiver({ secret: 's', custom: true, inbox })
  createReceiver({ secret: 's', custom: true, inbox: { ...inbox, key: ({ messageId }) => messageId ?? '' } })
})

test('onBatch gives lists of the messages that on gives, and off takes its handler', () => {
  const handler = (
    messages: readonly TrackMessage[],
    deliveries: readonly Delivery[],
    batch: MessageBatch,
  ): unknown => [messages, deliveries, batch.signal, batch.db]
  typed
    .onBatch('track', 'Order Completed', ([message], deliveries, { fail }) => {
      expectTypeOf(message?.properties.total).toEqualTypeOf<number | undefined>()
      expectTypeOf(deliveries).toEqualTypeOf<readonly Delivery[]>()
      expectTypeOf(fail).parameters.toEqualTypeOf<[index: number, error: unknown]>()
    })
    .onBatch(['identify', 'page'], (messages) => {
      for (const message of messages) {
        if (message.type === 'identify') expectTypeOf(message.traits.plan).toEqualTypeOf<'free' | 'paid'>()
        else expectTypeOf(message).toEqualTypeOf<PageMessage>()
      }
    })
  receiver.onBatch('*', (messages) => expectTypeOf(messages).toEqualTypeOf<readonly Message[]>())
  receiver.onBatch('track', handler, { name: 'rows', maxMessages: 1, maxWaitMs: 1, maxBytes: 1 }).off('track', handler)
  receiver.off('track', 'Order Completed', handler)
  // @ts-expect-error a name of no option
  receiver.onBatch('track', handler, { maxRows: 1 })
})

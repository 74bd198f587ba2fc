import { describe, expect, it } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'

const queue = memoryQueue()
const store = memoryDedupe()
const call = () => ''

describe('createReceiver refuses', () => {
  it.each([
    ['secret', {}],
    ['secret', { secret: '' }],
    ['secret', { secret: [] }],
    ['secret[1]', { secret: ['good', ''] }],
    ['secret[0]', { secret: [undefined, 'good'] }],
    ['secret', { secret: 5 }],
    ['allowUnsigned', { allowUnsigned: true, secret: 's' }],
    ['allowUnsigned', { allowUnsigned: 'yes' }],
    ['secert', { secert: 's' }],
    ['limit', { secret: 's', limit: 0 }],
    ['deadlineMs', { secret: 's', deadlineMs: 0 }],
    ['clock.setTimeout', { secret: 's', clock: { now: () => 0, monotonic: () => 0 } }],
    ['events', { secret: 's', events: [] }],
    ['events', { secret: 's', events: new Map() }],
    ['traits', { secret: 's', traits: null }],
    ['onRejected', { secret: 's', onRejected: 'log' }],
    ['onError', { secret: 's', onError: {} }],
    ['onDeadLetter', { secret: 's', inbox: queue, onDeadLetter: 'page me' }],
    ['onDeadLetter', { secret: 's', onDeadLetter: () => {} }],
    ['onUnplanned', { secret: 's', events: {}, onUnplanned: 'log' }],
    ['onUnplanned', { secret: 's', onUnplanned: () => {} }],
    ['logger.error', { secret: 's', logger: {} }],
    ['events', { secret: 's', events: { 'Order Completed': undefined } }],
    ['traits', { secret: 's', traits: { identify: {} } }],
    ['inbox', { secret: 's', inbox: null }],
    ['inbox', { secret: 's', inbox: {} }],
    ['secret.sauce', { secret: { source: call, secrets: call, sauce: 5 } }],
    ['secret.source', { secret: { secrets: call } }],
    ['secret.secrets', { secret: { source: call, secrets: 'shop' } }],
    ['inbox.queue', { secret: 's', inbox: { queue: undefined } }],
    ['inbox.queue', { secret: 's', inbox: { queue: { push() {}, work() {} } } }],
    ['inbox.concurency', { secret: 's', inbox: { queue, concurency: 5 } }],
    ['inbox.concurrency', { secret: 's', inbox: { queue, concurrency: 0 } }],
    ['inbox.timeoutMs', { secret: 's', inbox: { queue, timeoutMs: 0 } }],
    ['inbox.retries[1]', { secret: 's', inbox: { queue, retries: [5, -1] } }],
    ['inbox.retries[0]', { secret: 's', inbox: { queue, retries: ['5'] } }],
    ['inbox.key', { secret: 's', inbox: { queue, key: 'messageId' } }],
    ['inbox.groupBy', { secret: 's', inbox: { queue, groupBy: 'userId' } }],
    ['inbox.groupBy', { secret: 's', inbox: { queue: { ...queue, hasGroups: false }, groupBy: call } }],
    ['onRejected', { secret: 's', inbox: queue, onRejected: () => {} }],
    ['dedupe', { secret: 's', inbox: queue, dedupe: store }],
    ['dedupe', { secret: 's', dedupe: null }],
    ['dedupe', { secret: 's', dedupe: { claim() {} } }],
    ['dedupe.keys', { secret: 's', dedupe: { store, keys: () => '' } }],
    ['dedupe.key', { secret: 's', dedupe: { store, key: 'messageId' } }],
  ])('%s: %j', (option, options) => {
    expect(() => createReceiver(options as never)).toThrow(TypeError)
    expect(() => createReceiver(options as never)).toThrow(option)
  })

  it('about options that are none', () => {
    expect(() => createReceiver(undefined as never)).toThrow('Pass at least { secret }')
    expect(() => createReceiver('secret' as never)).toThrow(TypeError)
  })

  it('never shows a secret', () => {
    expect(() => createReceiver({ secret: 'hunter2', allowUnsigned: true })).not.toThrow('hunter2')
  })
})

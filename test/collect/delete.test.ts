import { expect, it } from 'vitest'
import type { CollectorDestination } from '../../src/collect/collector-types.ts'
import { HooklineError } from '../../src/protocol/error.ts'
import type { Submission } from '../../src/send/destination-types.ts'
import { recorder, setUpCollector } from '../support/collect.ts'
import { settle } from './dispatcher.ts'

const sourcesOf = (named: Readonly<Record<string, readonly CollectorDestination[]>>) =>
  Object.entries(named).map(([name, destinations]) => ({ name, writeKey: `key of ${name}`, destinations }))

function setUp() {
  const [shared, shop, off, app] = [recorder(), recorder(), recorder({ enabled: false }), recorder()]
  const sources = sourcesOf({ shop: [shared, shop, off], app: [shared, app], idle: [] })
  return { ...setUpCollector({ sources }), shared, shop, off, app }
}

const notification = { type: 'delete', userId: 'user-1', timestamp: '2026-01-15T09:30:00.000Z' }
const second = { ...notification, timestamp: '2026-01-15T09:30:00.001Z' }

it('a deletion is one notification for each affected source that has the destination enabled', async () => {
  const { collector, shared, shop, off, app } = setUp()

  const results = await collector.delete('user-1')

  expect(results).toEqual([
    { source: 'shop', queued: 2 },
    { source: 'app', queued: 2 },
    { source: 'idle', queued: 0 },
  ])
  const delivered = [shared, shop, off, app].map(({ messages }) => messages)
  expect(delivered).toEqual([[notification, second], [notification], [], [second]])
})

it('a deletion of named sources is for them only, each once', async () => {
  const { collector, shop, app } = setUp()
  expect(await collector.delete('user-1', { sources: ['app', 'app'] })).toEqual([{ source: 'app', queued: 2 }])
  expect([shop.messages, app.messages]).toEqual([[], [notification]])
})

it('a deletion rejects when a destination has no room, after the others have queued it', async () => {
  const later = recorder()
  const full = { submit: () => Promise.reject(new HooklineError('queue_full', 'no room')) }
  const slow = { submit: (given: readonly Submission[]) => settle().then(() => later.submit(given)) }
  const { collector } = setUpCollector({ sources: sourcesOf({ shop: [full], app: [slow] }) })

  await expect(collector.delete('user-1')).rejects.toMatchObject({ code: 'queue_full' })

  expect(later.messages).toEqual([second])
})

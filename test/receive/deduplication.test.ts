import { expect, it } from 'vitest'
import type { Message, ReceiverOptions } from '../../src/index.ts'
import type { Dedupe } from '../../src/receive/dedupe.ts'
import { memoryDedupe } from '../../src/receive/memory-dedupe.ts'
import { fixtures } from '../../src/testing.ts'
import { deliver, schemaOf, setUp } from '../support/receive.ts'

/** A store that takes every claim, and what was asked of it. */
function recording() {
  const log: string[] = []
  const store: Dedupe = {
    claim: (key) => {
      log.push(`claim ${key.length}`)
      return { confirm: () => void log.push('confirm'), release: () => void log.push('release') }
    },
    close() {},
  }
  return { store, log }
}

function setUpDedupe(dedupe: NonNullable<ReceiverOptions['dedupe']>, options: ReceiverOptions = {}) {
  const set = setUp({ dedupe, ...options })
  const seen: Message[] = []
  const handler = { run: (): unknown => undefined }
  set.receiver.on('*', (message) => {
    seen.push(message)
    return handler.run()
  })
  return { ...set, seen, handler }
}

it('dedupe has 1 000 copies at once run one handler, and answers the others 503, and 200 once that is done', async () => {
  const { receiver, seen, handler } = setUpDedupe(memoryDedupe())
  const held = Promise.withResolvers<void>()
  handler.run = () => held.promise
  const copies = Array.from({ length: 1000 }, () => deliver(receiver, fixtures.track))
  const others = await Promise.all(copies.slice(1))
  expect(new Set(others.map((other) => !other.ok && other.error.code))).toEqual(new Set(['duplicate_in_progress']))
  expect(others[0]).toMatchObject({ status: 503, headers: { 'retry-after': '5' } })
  held.resolve()
  const handled = { ok: true, status: 200, message: fixtures.track }
  expect(await copies[0]).toMatchObject({ ...handled, body: '{"ok":true}' })
  expect(await deliver(receiver, fixtures.track)).toMatchObject({ ...handled, body: '{"ok":true,"duplicate":true}' })
  await deliver(receiver, fixtures.page)
  expect(seen.map(({ type }) => type)).toEqual(['track', 'page'])
})

it('dedupe goes by a key of yours, however long it is, of what is authentic and a message, before its schema', async () => {
  const schema = schemaOf(() => ({ value: {} }))
  const { store, log } = recording()
  const keys: unknown[] = []
  const key = (message: Message) => {
    keys.push(message)
    return 'k'.repeat(1000)
  }
  const { receiver, seen } = setUpDedupe({ store, key }, { events: { 'Order Completed': schema } })
  await deliver(receiver, fixtures.track, 'another')
  await deliver(receiver, '{}')
  await deliver(receiver, fixtures.track)
  expect(keys).toEqual([fixtures.track])
  expect(seen).toEqual([{ ...fixtures.track, properties: {} }])
  expect(log).toEqual(['claim 36', 'confirm'])
})

/** Two processes that receive and work on one inbox. Leases hold here unless a process is killed. */

import { afterEach, describe, expect, it, onTestFinished } from 'vitest'
import { type Child, emptied, startChild } from './child.ts'
import { createSite, engines } from './engines.ts'
import { readJournal } from './journal.ts'
import { createLoad, type Load } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'

const COPIES = 1_000
/** Of each of the two, so that all copies are on their way at the same time. */
const CONNECTIONS = COPIES / 2
const MESSAGES = 2_000
const LONG_MS = 120_000
const TIMEOUT_MS = 60_000

interface Receiver {
  readonly child: Child
  readonly load: Load
}

describe.each(engines)('two receivers that share an inbox on $engine', ({ engine, at, leaseMs }) => {
  const closings: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const close of closings.splice(0).reverse()) await close()
  })

  async function setUp(lease: number) {
    const site = createSite(engine, at ?? '', lease)
    onTestFinished(site.remove)
    const { place, journal } = site
    const start = async (by: string): Promise<Receiver> => {
      const settings: ReceiverSettings = { place, journal, by }
      const child = startChild('receiver', settings)
      const load = createLoad(await child.ready, CONNECTIONS)
      closings.push(child.close, load.close)
      return { child, load }
    }
    const [first, second] = await Promise.all([start('first'), start('second')])
    return { first, second, entries: () => readJournal(journal) }
  }

  it.skipIf(at === undefined)(
    'handle one of a thousand copies',
    async () => {
      const { first, second, entries } = await setUp(LONG_MS)
      const posts = Array.from({ length: COPIES }, (_, n) => (n % 2 === 0 ? first : second).load.post('copy'))
      expect(new Set(await Promise.all(posts))).toEqual(new Set([200]))
      await emptied(first.child)
      expect(entries()).toHaveLength(1)
    },
    TIMEOUT_MS,
  )

  it.skipIf(at === undefined)(
    'share the work: none is lost, none is handled twice',
    async () => {
      const { first, second, entries } = await setUp(LONG_MS)
      const ids = Array.from({ length: MESSAGES }, (_, n) => String(n))
      const statuses = await Promise.all(ids.map((id, n) => (n % 2 === 0 ? first : second).load.post(id)))
      expect(new Set(statuses)).toEqual(new Set([200]))
      const counts = await emptied(second.child)
      const handled = entries()
      expect(handled.map(({ id }) => id).sort()).toEqual(ids.sort())
      expect(new Set(handled.map(({ by }) => by))).toEqual(new Set(['first', 'second']))
      expect(counts.deadLetters).toBe(0)
    },
    TIMEOUT_MS,
  )

  it.skipIf(at === undefined)(
    'when one is killed, the other finishes',
    async () => {
      const { first, second, entries } = await setUp(leaseMs)
      const accepted = new Set<string>()
      const left = Array.from({ length: MESSAGES }, (_, n) => String(n))
      const send = async ({ load, child }: Receiver): Promise<boolean> => {
        const id = left.pop()
        if (id === undefined) return false
        try {
          if ((await load.post(id)) < 300) accepted.add(id)
          if (child === first.child && accepted.size >= MESSAGES / 2) child.kill()
          return true
        } catch {
          left.push(id)
          return false // The other goes on.
        }
      }
      await Promise.all([first, second].map((receiver) => receiver.load.loop(() => send(receiver))))
      await second.load.loop(() => send(second))
      const counts = await emptied(second.child)
      const handled = new Set(entries().map(({ id }) => id))
      expect(accepted.size).toBe(MESSAGES)
      expect(handled).toEqual(accepted)
      expect(await first.child.ended).toBeNull()
      expect(counts.deadLetters).toBe(0)
    },
    TIMEOUT_MS,
  )
})

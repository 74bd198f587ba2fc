/** Four processes on one inbox, whose handlers block the event loop for longer than a claim lasts unless it is renewed. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { emptied, startChild } from '../child.ts'
import { createSite, engines, rounds } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { createLoad } from '../load.ts'
import type { ReceiverSettings } from '../programs/receiver.ts'

const PROCESSES = 4

/** On SQLite longer than two looks for dead processes. With pg-boss, whose shortest lease is 10 s, a round would take minutes. */
const cases = [
  { engine: 'sqlite', leaseMs: 1_000, blocksMs: 1_200, keeps: true },
  { engine: 'bullmq', leaseMs: 200, blocksMs: 600, keeps: false },
] as const

describe.each(cases)('an event loop that is blocked, on $engine', ({ engine, leaseMs, blocksMs, keeps }) => {
  const at = engines.find((tested) => tested.engine === engine)?.at

  it.skipIf(at === undefined)(
    keeps ? 'keeps its message: it is handled once' : 'loses its message, which is never taken for one that crashed',
    async () => {
      const site = createSite(engine, at ?? '', leaseMs)
      onTestFinished(site.remove)
      const { place, journal } = site
      const settings: ReceiverSettings = { place, journal, blocksMs }
      const children = Array.from({ length: PROCESSES }, () => startChild('receiver', settings))
      const loads = (await Promise.all(children.map(({ ready }) => ready))).map((origin) => createLoad(origin, 1))
      const ids = Array.from({ length: rounds }, (_, round) => `${round}`)
      for (const [round, id] of ids.entries()) {
        const turn = round % PROCESSES
        expect(await loads[turn]?.post(id)).toBe(200)
        await emptied(children[turn] as (typeof children)[0])
      }
      const reasons = await children[0]?.ask('reasons')
      await Promise.all([...loads, ...children].map((each) => each.close()))
      expect(reasons).toEqual(keeps ? [] : ids.map(() => 'lease_lapsed'))
      const handled = readJournal(journal).map((entry) => entry.id)
      if (keeps) expect(handled).toEqual(ids)
      else expect(new Set(handled)).toEqual(new Set(ids))
    },
    60_000 + rounds * 10_000,
  )
})

/** A user who is forgotten by one process while two handle their messages. Leases hold. */

import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Forgotten } from '../../../src/store/queue-types.ts'
import { startChild } from '../child.ts'
import { rounds, type TestedSite, testOnEngines } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { createLoad } from '../load.ts'
import type { ReceiverSettings } from '../programs/receiver.ts'

const LONG_MS = 600_000
/** More than two processes handle at once. */
const MESSAGES = 300
const FORGET_WITHIN_MS = 200

const TITLE =
  'two receivers, one of which forgets a user: a message is handled or deleted, and what is handled later was active'
async function run({ engine, site, random }: TestedSite): Promise<void> {
  const { place, journal } = site
  const settings: ReceiverSettings = { place, journal, handlingMs: 100 }
  const children = [0, 1].map(() => startChild('receiver', settings))
  const loads = (await Promise.all(children.map(({ ready }) => ready))).map((origin) => createLoad(origin))
  const [first] = children as [(typeof children)[0]]
  for (let round = 0; round < rounds; round += 1) {
    const readHandled = () => new Set(readJournal(journal).flatMap(({ id }) => (id.startsWith(`${round}-`) ? id : [])))
    const accepted = new Set<string>()
    const posts = Array.from({ length: MESSAGES }, async (_, n) => {
      if ((await loads[n % 2]?.post(`${round}-${n}`)) === 200) accepted.add(`${round}-${n}`)
    })
    await wait(random() * FORGET_WITHIN_MS)
    const asked = new Set(accepted)
    const { deleted, active } = await first.ask<Forgotten>('forget')
    const before = readHandled()
    await Promise.all(posts)
    for (const child of [...children, first]) await child.ask('drain')
    const handled = readHandled()
    const late = [...handled].filter((id) => asked.has(id) && !before.has(id))
    if (engine !== 'pg-boss') expect(late.length).toBeLessThanOrEqual(active) // It counts what the asked process has claimed.
    expect(accepted.size).toBe(MESSAGES)
    const again = await first.ask<Forgotten>('forget')
    expect(again.active).toBe(0)
    expect(deleted + handled.size).toBe(MESSAGES)
  }
  await Promise.all([...loads, ...children].map((each) => each.close()))
}

testOnEngines(TITLE, run, { leaseMs: LONG_MS })

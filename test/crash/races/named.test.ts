/** A process that dies while one handler of its messages has ended and another one goes on. */

import { expect } from 'vitest'
import { emptied, startChild } from '../child.ts'
import { testOnEngines } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { createLoad } from '../load.ts'
import type { ReceiverSettings } from '../programs/receiver.ts'

const MESSAGES = 10

testOnEngines('named handlers that ended before the kill do not run again', async ({ site }) => {
  const { place, journal } = site
  const settings = { place, journal, handlingMs: 0 } satisfies ReceiverSettings
  const first = startChild('receiver', { ...settings, named: 'kills' } satisfies ReceiverSettings)
  const load = createLoad(await first.ready)
  const ids = Array.from({ length: MESSAGES }, (_, index) => `${index}`)
  const statuses = await Promise.all(ids.map((id) => load.post(id)))
  expect(statuses).toEqual(ids.map(() => 200))
  await first.ended
  await load.close()
  const next = startChild('receiver', { ...settings, named: 'ends' } satisfies ReceiverSettings)
  await next.ready
  await emptied(next)
  await next.close()
  const ran = readJournal(journal).map(({ id }) => id)
  for (const [name, times] of Object.entries({ mail: 1, crm: 2 })) {
    const counts = ids.map((id) => ran.filter((entry) => entry === `${id}:${name}`).length)
    expect([name, ...counts]).toEqual([name, ...ids.map(() => times)])
  }
  expect(ran.filter((entry) => entry === '0')).toHaveLength(1) // Without a name: one unit, done before the kill.
})

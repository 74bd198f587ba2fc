/** Two processes that receive and work on one inbox. Leases hold here. */

import { expect } from 'vitest'
import { emptied, startChild } from './child.ts'
import { type TestedSite, testOnEngines } from './engines.ts'
import { readJournal } from './journal.ts'
import { createLoad } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'

const COPIES = 1_000
/** Each of the two has so many, so that all copies are on their way at the same time. */
const CONNECTIONS = COPIES / 2
const MESSAGES = 2_000
const LONG_MS = 120_000

async function run({ site }: TestedSite): Promise<void> {
  const { place, journal } = site
  const children = ['first', 'second'].map((by) =>
    startChild('receiver', { place, journal, by } satisfies ReceiverSettings),
  )
  const loads = await Promise.all(children.map(async ({ ready }) => createLoad(await ready, CONNECTIONS)))
  const [child] = children as [(typeof children)[0]]
  const post = async (ids: readonly string[]) => {
    const statuses = await Promise.all(ids.map((id, index) => loads[index % 2]?.post(id)))
    expect(new Set(statuses)).toEqual(new Set([200]))
    expect(await emptied(child)).toMatchObject({ deadLetters: 0 })
  }
  const ids = Array.from({ length: MESSAGES }, (_, index) => `${index}`)

  await post(Array(COPIES).fill('copy'))
  expect(readJournal(journal)).toHaveLength(1)

  await post(ids)
  const handled = readJournal(journal)
  expect(handled.map(({ id }) => id).sort()).toEqual([...ids, 'copy'].sort())
  expect(new Set(handled.map(({ by }) => by))).toEqual(new Set(['first', 'second']))

  await Promise.all([...children, ...loads].map((each) => each.close()))
}

testOnEngines(
  'two receivers that share an inbox handle one of a thousand copies, and share the work: none is lost or handled twice',
  run,
  { leaseMs: LONG_MS },
)

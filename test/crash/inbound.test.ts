/** A receiver that is killed over and over while it accepts and handles messages. */

import { expect } from 'vitest'
import { emptied, startChild } from './child.ts'
import { rounds, type Site, testOnEngines } from './engines.ts'
import { readJournal } from './journal.ts'
import { createLoad, type Load } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'
import { type Round, runRounds } from './rounds.ts'

const COPIED = 5
/** How many attempts of a hundred fail. */
const FAILING = 5
const MAX_MESSAGES = 20
/** The messages of a batch and those beside it, and as many whose completion is not recorded yet. */
const MOST_HELD = 2 * (MAX_MESSAGES + 5)
/** Of an engine that takes groups. */
const GROUPS = 40

/**
 * Runs the rounds, then sends again what was not answered, and waits until everything is handled. Redrives the dead letters of
 * messages whose process was killed too often.
 */
async function runInbound(site: Site, random: () => number, manner: Partial<ReceiverSettings> = {}) {
  const { place, journal } = site
  const sent = new Set<string>()
  const accepted = new Set<string>()
  const refused: number[] = []
  const inspections = new Set<string>()
  const inGroups = place.engine === 'bullmq' ? {} : { groups: GROUPS }
  const settings = { place, journal, failing: FAILING, ...inGroups, ...manner }
  const start = (round: number) =>
    startChild('receiver', { ...settings, by: `round-${round}` } satisfies ReceiverSettings)

  const unanswered = () => [...sent].filter((id) => !accepted.has(id))
  async function post(load: Load, id: string): Promise<void> {
    const status = await load.post(id)
    if (status < 300) accepted.add(id)
    else refused.push(status)
  }

  async function run({ child, said, killAfter }: Round): Promise<void> {
    const load = createLoad(said)
    const before = accepted.size
    const again = unanswered()
    await load.loop(async () => {
      const id = again.pop() ?? String(sent.size)
      sent.add(id)
      try {
        const copies = Number(id) % COPIED === 0 ? 2 : 1
        await Promise.all(Array.from({ length: copies }, () => post(load, id)))
      } catch {
        return false // The receiver was killed.
      }
      if (accepted.size - before >= killAfter) child.kill()
      return true
    })
    await load.close()
  }

  await runRounds({ rounds, random, start, run, inspect: () => void inspections.add(site.inspect()) })
  const last = start(rounds + 1)
  const load = createLoad(await last.ready)
  const again = unanswered()
  await load.loop(async () => {
    const id = again.pop()
    if (id !== undefined) await post(load, id)
    return id !== undefined
  })
  await load.close()
  await emptied(last)
  const reasons = await last.ask<string[]>('reasons')
  await last.ask('redrive')
  const counts = await emptied(last)
  const exitCode = await last.close()
  inspections.add(site.inspect())
  return { sent, accepted, handled: readJournal(journal), refused, inspections, reasons, counts, exitCode }
}

testOnEngines(
  'a receiver that is killed over and over handles every message that it accepted, and no other',
  async ({ site, random }) => {
    const { sent, accepted, handled, refused, inspections, reasons, ...end } = await runInbound(site, random)
    expect(accepted).toEqual(sent)
    expect(new Set(handled.map(({ id }) => id))).toEqual(accepted)
    expect(refused).toEqual([])
    expect(reasons.filter((reason) => !['crashed', 'lease_lapsed'].includes(reason))).toEqual([])
    expect(inspections).toEqual(new Set(['ok']))
    expect(end).toMatchObject({ counts: { waiting: 0, active: 0, deadLetters: 0 }, exitCode: 0 })
  },
)

testOnEngines(
  'a receiver of batches that is killed over and over loses no message, and handles none twice but those it held',
  async ({ site, random }) => {
    const { accepted, handled, counts } = await runInbound(site, random, { maxMessages: MAX_MESSAGES })
    const last = new Map(handled.map(({ id, by }) => [id, by]))
    const again = [...Map.groupBy(handled, ({ by }) => by)].flatMap(([by, entries]) =>
      entries.flatMap(({ id }, index) => (last.get(id) === by ? [] : { id, place: entries.length - index })),
    )
    expect([...accepted].filter((id) => !last.has(id))).toEqual([])
    expect(again.filter(({ place }) => place > MOST_HELD)).toEqual([])
    expect(handled).toHaveLength(last.size + again.length) // No process handled one twice.
    expect(counts).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  },
)

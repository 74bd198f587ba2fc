/** A receiver that is killed over and over while it accepts and handles messages. */

import { expect, it, onTestFinished } from 'vitest'
import { emptied, startChild } from './child.ts'
import { createSite, rounds, type Site, seed, testOnEngines } from './engines.ts'
import { readJournal } from './journal.ts'
import { createLoad, type Load } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'
import { createRandom } from './random.ts'
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
async function runInbound(site: Site, rounds: number, random: () => number, manner: Partial<ReceiverSettings> = {}) {
  const { place, journal } = site
  const sent = new Set<string>()
  const accepted = new Set<string>()
  const refused: number[] = []
  const inspections = new Set<string>()
  const inGroups = place.engine === 'bullmq' ? {} : { groups: GROUPS }
  const start = (round: number) => {
    const settings: ReceiverSettings = {
      place,
      journal,
      by: `round-${round}`,
      failing: FAILING,
      ...inGroups,
      ...manner,
    }
    return startChild('receiver', settings)
  }

  async function post(load: Load, id: string): Promise<void> {
    const status = await load.post(id)
    if (status < 300) accepted.add(id)
    else refused.push(status)
  }

  async function run({ child, said, killAfter }: Round): Promise<void> {
    const load = createLoad(said)
    const before = accepted.size
    const unanswered = unansweredOf(sent, accepted)
    await load.loop(async () => {
      const id = unanswered.pop() ?? String(sent.size)
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
  const unanswered = unansweredOf(sent, accepted)
  await load.loop(async () => {
    const id = unanswered.pop()
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

function unansweredOf(sent: ReadonlySet<string>, accepted: ReadonlySet<string>): string[] {
  return [...sent].filter((id) => !accepted.has(id))
}

testOnEngines(
  'a receiver that is killed over and over handles every message that it accepted, and no other',
  async (tested) => {
    const { engine, site, random } = tested
    console.log(`${engine}, inbound: ${rounds} rounds, seed ${seed}`)
    const result = await runInbound(site, rounds, random)
    const { sent, accepted, handled, refused, inspections, reasons, counts, exitCode } = result
    const ids = new Set(handled.map(({ id }) => id))
    console.log(`${accepted.size} accepted, ${handled.length} times handled, ${reasons.length} redriven`)
    expect([...accepted].filter((id) => !ids.has(id))).toEqual([])
    expect([...ids].filter((id) => !sent.has(id))).toEqual([])
    expect(accepted).toEqual(sent)
    expect(refused).toEqual([])
    expect(reasons.filter((reason) => !['crashed', 'lease_lapsed'].includes(reason))).toEqual([])
    expect(inspections).toEqual(new Set(['ok']))
    expect(counts).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
    expect(exitCode).toBe(0)
  },
)

testOnEngines(
  'a receiver of batches that is killed over and over loses no message, and handles none twice but those it held',
  async ({ engine, site, random }) => {
    const { accepted, handled, reasons, counts } = await runInbound(site, rounds, random, { maxMessages: MAX_MESSAGES })
    const last = new Map(handled.map(({ id, by }) => [id, by]))
    const again = [...Map.groupBy(handled, ({ by }) => by)].flatMap(([by, entries]) =>
      entries.flatMap(({ id }, index) => (last.get(id) === by ? [] : { id, place: entries.length - index })),
    )
    console.log(`${engine}, batches: ${rounds} rounds, seed ${seed}`)
    console.log(`${accepted.size} accepted, ${handled.length} times handled, ${reasons.length} redriven`)
    expect([...accepted].filter((id) => !last.has(id))).toEqual([])
    expect(again.filter(({ place }) => place > MOST_HELD)).toEqual([])
    expect(handled).toHaveLength(last.size + again.length) // No process handled one twice.
    expect(counts).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  },
)

it('an inbox in memory would show a loss', { timeout: 60_000 }, async () => {
  const site = createSite('memory', '', 1_000)
  onTestFinished(site.remove)
  const { accepted, handled } = await runInbound(site, 3, createRandom(1))
  const ids = new Set(handled.map(({ id }) => id))
  expect([...accepted].filter((id) => !ids.has(id))).not.toEqual([])
})

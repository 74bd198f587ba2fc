/** Kills a receiver over and over while it accepts and handles messages, and reports what was handled. */

import { join } from 'node:path'
import type { QueueCounts } from '../../src/queues/health.ts'
import { emptied, startChild } from './child.ts'
import type { Site } from './engines.ts'
import { type Entry, readJournal } from './journal.ts'
import { createLoad, type Load, secret } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'
import { type Round, runRounds } from './rounds.ts'

/** What was sent, accepted and handled. */
export interface InboundResult {
  readonly sent: ReadonlySet<string>
  /** Answered with a 2xx. */
  readonly accepted: ReadonlySet<string>
  /** What handlers completed. */
  readonly handled: readonly Entry[]
  /** Every other status. */
  readonly refused: readonly number[]
  /** The state of the store after each round. */
  readonly inspections: ReadonlySet<string>
  /** The reasons of dead letters, before they were redriven. */
  readonly reasons: readonly string[]
  /** At the end. */
  readonly counts: QueueCounts
  /** The exit code of the last process, which was closed. */
  readonly exitCode: number | null
}

/** Every fifth message is sent twice at the same time. */
const COPIED = 5
/** How many attempts of a hundred fail. */
const FAILING = 5

/**
 * Runs the rounds, then sends again what was not answered, and waits until everything is handled. Redrives the dead letters of
 * messages whose process was killed too often.
 */
export async function runInbound(site: Site, rounds: number, random: () => number): Promise<InboundResult> {
  const journal = join(site.folder, 'journal')
  const sent = new Set<string>()
  const accepted = new Set<string>()
  const refused: number[] = []
  const inspections = new Set<string>()
  const start = (round: number) =>
    startChild('receiver', {
      place: site.place,
      secret,
      journal,
      by: `round-${round}`,
      failing: FAILING,
    } satisfies ReceiverSettings)

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

/** A receiver that is killed over and over while it accepts and handles messages, and what came of it. */

import { join } from 'node:path'
import type { QueueCounts } from '../../src/queues/queue.ts'
import { emptied, startChild } from './child.ts'
import type { Site } from './engines.ts'
import { type Entry, readJournal } from './journal.ts'
import { createLoad, type Load, secret } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'
import { playRounds, type Round } from './rounds.ts'

/** What came of it. */
export interface Outcome {
  readonly sent: ReadonlySet<string>
  /** Those that were answered 2xx. */
  readonly accepted: ReadonlySet<string>
  /** What the handlers were done with. */
  readonly handled: readonly Entry[]
  /** What was answered that is no 2xx. */
  readonly refused: readonly number[]
  /** What was wrong with the store after each round. */
  readonly inspections: ReadonlySet<string>
  /** Why messages were given up, before they were re-driven. */
  readonly reasons: readonly string[]
  /** In the end. */
  readonly counts: QueueCounts
  /** The exit code of the last process, which was closed in good order. */
  readonly exitCode: number | null
}

/** Every fifth message is sent twice at the same time. */
const COPIED = 5
/** How many messages of a hundred fail at an attempt. */
const FAILING = 5

/**
 * Makes the rounds, then sends again what was not answered, and lets everything be handled. What an inbox gave up because
 * too many processes died of it, as it seems, is re-driven.
 */
export async function playInbound(site: Site, rounds: number, random: () => number): Promise<Outcome> {
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

  async function play({ child, said, killAfter }: Round): Promise<void> {
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
        return false // Whoever was to answer is dead.
      }
      if (accepted.size - before >= killAfter) child.kill()
      return true
    })
    await load.close()
  }

  await playRounds({ rounds, random, start, play, inspect: () => void inspections.add(site.inspect()) })
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

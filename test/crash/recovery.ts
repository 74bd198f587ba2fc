/** How long the messages of a killed process wait until another one has handled them, with the defaults of the engine. */

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type Child, startChild } from './child.ts'
import type { Site } from './engines.ts'
import { type Entry, readJournal } from './journal.ts'
import { createLoad, secret } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'

/** How to measure. */
export interface RecoveryOptions {
  /** How many processes are killed, each while it handles one message. */
  readonly kills: number
  /** Whether the other process runs already when they are killed, or starts afterwards. */
  readonly isRunning: boolean
  /** The kills are spread over this time, because leases are renewed and looked for now and then, in milliseconds. */
  readonly spreadMs: number
  readonly random: () => number
}

/**
 * Measures one time for each kill, in milliseconds: from SIGKILL, or from the moment when the other process
 * works, until the message is handled.
 */
export async function measureRecovery(
  site: Site,
  { kills, isRunning, spreadMs, random }: RecoveryOptions,
): Promise<readonly number[]> {
  const [taken, handled] = [join(site.folder, 'taken'), join(site.folder, 'handled')]
  const children: Child[] = []
  const start = async (by: string, holds: boolean): Promise<string> => {
    const journal = holds ? taken : handled
    const settings: ReceiverSettings = { place: site.place, secret, journal, by, failing: 0, holds }
    const child = startChild('receiver', settings)
    children.push(child)
    return child.ready
  }
  try {
    const origin = await start('0', true) // Alone: it creates the schema.
    for (let by = 1; by < kills; by += 1) await start(`${by}`, true)
    const load = createLoad(origin)
    const statuses = await Promise.all(Array.from({ length: kills }, (_, id) => load.post(`${id}`)))
    if (statuses.some((status) => status !== 200)) throw new Error(`A message was not accepted: ${statuses}.`)
    await load.close()
    const held = await entriesOf(taken, kills)

    if (isRunning) await start('other', false)
    const since = new Map<string, number>()
    const killAt = held.map((entry) => ({ entry, afterMs: random() * spreadMs }))
    await Promise.all(
      killAt.map(async ({ entry, afterMs }) => {
        await wait(isRunning ? afterMs : 0)
        children[Number(entry.by)]?.kill()
        since.set(entry.id, Date.now())
      }),
    )
    if (!isRunning) {
      await Promise.all(children.map((child) => child.ended))
      await start('other', false)
      for (const { id } of held) since.set(id, Date.now())
    }
    const ends = await entriesOf(handled, kills)
    return ends.map(({ id, at }) => at - (since.get(id) ?? 0))
  } finally {
    for (const child of children) child.kill()
    await Promise.all(children.map((child) => child.ended))
  }
}

/** Twice what the slowest engine may need. */
const LONGEST_MS = 100_000

/** Waits until a journal has so many entries. */
async function entriesOf(journal: string, count: number): Promise<readonly Entry[]> {
  for (const end = Date.now() + LONGEST_MS; ; ) {
    const entries = readJournal(journal)
    if (entries.length >= count) return entries
    if (Date.now() > end)
      throw new Error(`${journal} has ${entries.length} entries, not ${count}: ${JSON.stringify(entries)}`)
    await wait(20)
  }
}

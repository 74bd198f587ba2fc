import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Child, startChild } from './child.ts'
import { createSite, rounds, type Site, seed } from './engines.ts'
import { readJournal } from './journal.ts'
import { openQueue } from './place.ts'
import type { PusherSettings } from './programs/pusher.ts'
import { createRandom } from './random.ts'

const HANDS: Readonly<Record<string, (child: Child, path: string, refused: () => Promise<void>) => unknown>> = {
  // The copy drops all locks of the process, so the other one would take itself for the last, and delete the log.
  'copy its folder from inside the process, and open it from another later': async (child, path, refused) => {
    await child.ask('copy')
    await refused()
    const other = new DatabaseSync(path, { timeout: 5_000 })
    other.prepare('SELECT count(*) FROM hookline_queue_jobs').get()
    other.close()
  },
  'delete its log and the index of that': (_, path) => {
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`, { force: true })
  },
}

describe.each(Object.entries(HANDS))('a SQLite file in use, while others %s', (_name, touch) => {
  it(
    `loses no job that was pushed, although the process is killed afterwards, seed ${seed}`,
    async () => {
      const site = createSite('sqlite', '')
      const notes = mkdtempSync(join(tmpdir(), 'hookline-crash-'))
      onTestFinished(async () => {
        await site.remove()
        rmSync(notes, { recursive: true, force: true })
      })
      const journal = join(notes, 'journal')
      const settings: PusherSettings = { place: site.place, journal, copyTo: join(notes, 'copy') }
      const idsOf = (what: string) => readJournal(journal).flatMap(({ id, by }) => (by === what ? id : []))
      const random = createRandom(seed)

      for (let round = 0; round < rounds; round += 1) {
        const child = startChild('pusher', settings)
        let hasEnded = false
        const end = child.ended.then(() => {
          hasEnded = true
        })
        /** Pushes so many jobs, unless the process ends before. */
        async function pushMore(count: number): Promise<void> {
          const goal = idsOf('pushed').length + count
          while (!hasEnded && idsOf('pushed').length < goal) await wait(5)
        }
        await child.ready
        await pushMore(10 + 100 * random())
        await touch(child, site.place.at, async () => {
          while (!hasEnded && idsOf('refused').length <= round) await wait(5)
        })
        await pushMore(100)
        expect(hasEnded).toBe(false)
        child.kill()
        await end
        expect(site.inspect()).toBe('ok')
      }

      await requireAll(idsOf('pushed'), site)
      expect(idsOf('refused')).toHaveLength(rounds)
      expect(idsOf('pushed').length).toBeGreaterThan(100 * rounds)
    },
    60_000 + rounds * 10_000,
  )
})

/** Handles what is in the queue: all these jobs must be among it. */
async function requireAll(pushed: readonly string[], { place }: Site): Promise<void> {
  const queue = await openQueue(place)
  onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
  const handled = new Set<string>()
  queue.work(
    async ({ id }) => {
      handled.add(id)
      return { complete: true }
    },
    { concurrency: 100 },
  )
  await queue.drain()
  expect(pushed.filter((id) => !handled.has(id))).toEqual([])
}

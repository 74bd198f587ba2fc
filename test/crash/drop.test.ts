/** Processes that are killed while they drop and forget: each job stays where it was, or is deleted: pushed again, it is handled. */

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Outcome, Queue } from '../../src/store/queue-types.ts'
import { startChild } from './child.ts'
import { rounds, type Site, testOnEngines } from './engines.ts'
import { openQueue } from './place.ts'
import type { DropperSettings } from './programs/dropper.ts'

const WAYS = ['drop ids', 'drop all', 'forget'] as const
const JOBS = 100
const AGAIN = 'pushed again'

/** Kills so many processes, each at a random moment of the time that one needs that is not killed. */
async function runDrops(site: Site, kills: number, random: () => number) {
  const handled = new Map<string, string>()
  const inspections = new Set<string>()
  const ids: string[] = []
  let outcome: Outcome = { complete: true }

  /** Returns how long it took, in milliseconds. */
  async function run(queue: Queue, way: (typeof WAYS)[number], killAfterMs?: number): Promise<number> {
    const body = randomUUID()
    const jobs = Array.from({ length: 2 * JOBS }, () => ({ id: randomUUID(), body: Buffer.from(body) }))
    const [letters, waiting] = [jobs.slice(0, JOBS), jobs.slice(JOBS)]
    ids.push(...jobs.map(({ id }) => id))
    outcome = { deadLetter: 'no' }
    await queue.push(letters)
    await queue.drain()
    void queue.pause()
    await queue.push(waiting)

    const settings: DropperSettings = { place: site.place, ids: letters.map(({ id }) => id), body }
    const child = startChild('dropper', settings)
    await child.ready
    const began = performance.now()
    const end = child.ask(way)
    await (killAfterMs === undefined ? end : Promise.race([end, wait(killAfterMs)]))
    const tookMs = performance.now() - began
    end.catch(() => {}) // It is killed.
    child.kill()
    await child.ended
    inspections.add(site.inspect())

    outcome = { complete: true }
    queue.resume()
    // Twice: the server may still run what the process had sent, and so delete what it has just been sent again.
    for (let time = 0; time < 2; time += 1) {
      const missing = jobs.filter(({ id }) => !handled.has(id))
      await queue.push(missing.map(({ id }) => ({ id, body: Buffer.from(AGAIN) })))
      await queue.redrive('all')
      await queue.drain()
    }
    return tookMs
  }

  const queue = await openQueue(site.place)
  queue.work(
    async ({ id, body }) => {
      if ('complete' in outcome) handled.set(id, Buffer.from(body).toString())
      return outcome
    },
    { concurrency: JOBS },
  )
  try {
    const wholeMs = new Map<string, number>()
    for (const way of WAYS) wholeMs.set(way, await run(queue, way))
    for (let kill = 0; kill < kills; kill += 1) {
      const way = WAYS[kill % WAYS.length] ?? 'forget'
      await run(queue, way, random() * (wholeMs.get(way) ?? 0))
    }
    const deleted = ids.filter((id) => handled.get(id) === AGAIN).length
    const swallowed = ids.filter((id) => !handled.has(id)).length // On no list, and the id is taken.
    return { deleted, swallowed, inspections, left: (await queue.deadLetters()).length }
  } finally {
    await queue.close({ graceMs: 0 })
  }
}

testOnEngines('a kill during a drop swallows no job', async ({ site, random }) => {
  const { deleted, swallowed, inspections, left } = await runDrops(site, rounds, random)
  expect([swallowed, left]).toEqual([0, 0])
  expect(deleted).toBeGreaterThan(0)
  expect(inspections).toEqual(new Set(['ok']))
})

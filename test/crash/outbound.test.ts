import { describe, expect, it, onTestFinished } from 'vitest'
import { createSite, engines } from './engines.ts'
import { isRefused, playOutbound } from './outbound.ts'
import { createRandom, readSettings } from './random.ts'

const { rounds, seed } = readSettings()
/** Short, so that what a dead process held comes back soon. */
const LEASE_MS = 1_000
const PATIENCE_MS = 60_000 + rounds * 10_000

describe.each(engines)('a destination on $engine, killed over and over', ({ engine, at }) => {
  it.skipIf(at === undefined)(
    'delivers or lists every message that it took',
    async () => {
      console.log(`${engine}, outbound: ${rounds} rounds, seed ${seed}`)
      const site = createSite(engine, at ?? '', LEASE_MS)
      onTestFinished(site.remove)
      const { queued, delivered, dead, inspections, counts, exitCode } = await playOutbound(
        site,
        rounds,
        createRandom(seed),
      )
      console.log(`${queued.length} queued, ${delivered.size} delivered, ${dead.length} dead`)
      const listed = new Set(dead)
      expect(queued.filter((id) => !delivered.has(id) && !listed.has(`${id} refused`))).toEqual([])
      expect(dead.filter((line) => !(line.endsWith(' refused') && isRefused(line.split(' ')[0] ?? '')))).toEqual([])
      expect(listed.size).toBe(dead.length)
      expect(inspections).toEqual(new Set(['ok']))
      expect(counts).toMatchObject({ waiting: 0, active: 0, dead: dead.length })
      expect(exitCode).toBe(0)
    },
    PATIENCE_MS,
  )
})

it(
  'would show a loss: a queue in memory loses what it took',
  async () => {
    const site = createSite('memory', '', LEASE_MS)
    onTestFinished(site.remove)
    const { queued, delivered } = await playOutbound(site, 3, createRandom(1))
    expect(queued.filter((id) => !delivered.has(id) && !isRefused(id))).not.toEqual([])
  },
  PATIENCE_MS,
)

import { describe, expect, it, onTestFinished } from 'vitest'
import { runDrops } from './drop.ts'
import { createSite, engines } from './engines.ts'
import { createRandom, readSettings } from './random.ts'

const { rounds, seed } = readSettings()
const TIMEOUT_MS = 60_000 + rounds * 10_000

describe.each(engines)('processes on $engine that are killed while they drop and forget', ({ engine, at, leaseMs }) => {
  it.skipIf(at === undefined)(
    'leave each job where it was, or delete it: pushed again, it is handled',
    async () => {
      const site = createSite(engine, at ?? '', leaseMs)
      onTestFinished(site.remove)
      const result = await runDrops(site, rounds, createRandom(seed))
      const { pushed, deleted, kept, swallowed, inspections, left } = result
      console.log(`${engine}, drop: ${rounds} kills, seed ${seed}`)
      console.log(`${pushed} pushed, ${deleted} deleted, ${kept} kept, ${swallowed} swallowed`)
      expect([swallowed, left]).toEqual([0, 0])
      expect(deleted).toBeGreaterThan(0)
      expect(inspections).toEqual(new Set(['ok']))
    },
    TIMEOUT_MS,
  )
})

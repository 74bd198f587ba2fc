import { describe, expect, it, onTestFinished } from 'vitest'
import { createSite, engines } from './engines.ts'
import { playInbound } from './inbound.ts'
import { createRandom, readSettings } from './random.ts'

const { rounds, seed } = readSettings()
/** Short, so that what a dead process held comes back soon. */
const LEASE_MS = 1_000
const PATIENCE_MS = 60_000 + rounds * 10_000

describe.each(engines)('a receiver with an inbox on $engine, killed over and over', ({ engine, at }) => {
  it.skipIf(at === undefined)(
    'handles every message that it accepted, and nothing else',
    async () => {
      console.log(`${engine}, inbound: ${rounds} rounds, seed ${seed}`)
      const site = createSite(engine, at ?? '', LEASE_MS)
      onTestFinished(site.remove)
      const played = await playInbound(site, rounds, createRandom(seed))
      const { sent, accepted, handled, refused, inspections, reasons, counts, exitCode } = played
      const ids = new Set(handled.map(({ id }) => id))
      console.log(`${accepted.size} accepted, ${handled.length} times handled, ${reasons.length} re-driven`)
      expect([...accepted].filter((id) => !ids.has(id))).toEqual([])
      expect([...ids].filter((id) => !sent.has(id))).toEqual([])
      expect(accepted).toEqual(sent)
      expect(refused).toEqual([])
      expect(reasons.filter((reason) => reason !== 'crashed')).toEqual([])
      expect(inspections).toEqual(new Set(['ok']))
      expect(counts).toMatchObject({ waiting: 0, active: 0, dead: 0 })
      expect(exitCode).toBe(0)
    },
    PATIENCE_MS,
  )
})

it(
  'would show a loss: a queue in memory loses what it accepted',
  async () => {
    const site = createSite('memory', '', LEASE_MS)
    onTestFinished(site.remove)
    const { accepted, handled } = await playInbound(site, 3, createRandom(1))
    const ids = new Set(handled.map(({ id }) => id))
    expect([...accepted].filter((id) => !ids.has(id))).not.toEqual([])
  },
  PATIENCE_MS,
)

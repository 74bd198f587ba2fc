import { describe, expect, it, onTestFinished } from 'vitest'
import { createSite, engines } from './engines.ts'
import { runInbound } from './inbound.ts'
import { createRandom, readSettings } from './random.ts'

const { rounds, seed } = readSettings()
const TIMEOUT_MS = 60_000 + rounds * 10_000

describe.each(engines)('a receiver with an inbox on $engine, killed over and over', ({ engine, at, leaseMs }) => {
  it.skipIf(at === undefined)(
    'handles every message that it accepted, and no other',
    async () => {
      console.log(`${engine}, inbound: ${rounds} rounds, seed ${seed}`)
      const site = createSite(engine, at ?? '', leaseMs)
      onTestFinished(site.remove)
      const result = await runInbound(site, rounds, createRandom(seed))
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
    TIMEOUT_MS,
  )
})

it(
  'would show a loss: a queue in memory loses what it accepted',
  async () => {
    const site = createSite('memory', '', 1_000)
    onTestFinished(site.remove)
    const { accepted, handled } = await runInbound(site, 3, createRandom(1))
    const ids = new Set(handled.map(({ id }) => id))
    expect([...accepted].filter((id) => !ids.has(id))).not.toEqual([])
  },
  TIMEOUT_MS,
)

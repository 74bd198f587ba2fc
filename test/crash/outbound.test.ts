import { describe, expect, it, onTestFinished } from 'vitest'
import { createSite, engines } from './engines.ts'
import { isRefused, runOutbound } from './outbound.ts'
import { createRandom, readSettings } from './random.ts'

const { rounds, seed } = readSettings()
const TIMEOUT_MS = 60_000 + rounds * 10_000

describe.each(engines)('a destination on $engine, killed over and over', ({ engine, at, leaseMs }) => {
  it.skipIf(at === undefined)(
    'delivers every message that it accepted, or lists it as a dead letter',
    async () => {
      console.log(`${engine}, outbound: ${rounds} rounds, seed ${seed}`)
      const site = createSite(engine, at ?? '', leaseMs)
      onTestFinished(site.remove)
      const { queued, delivered, deadLetters, inspections, counts, exitCode } = await runOutbound(
        site,
        rounds,
        createRandom(seed),
      )
      console.log(`${queued.length} queued, ${delivered.size} delivered, ${deadLetters.length} dead letters`)
      const listed = new Set(deadLetters)
      expect(queued.filter((id) => !delivered.has(id) && !listed.has(`${id} refused`))).toEqual([])
      expect(deadLetters.filter((line) => !(line.endsWith(' refused') && isRefused(line.split(' ')[0] ?? '')))).toEqual(
        [],
      )
      expect(listed.size).toBe(deadLetters.length)
      expect(inspections).toEqual(new Set(['ok']))
      expect(counts).toMatchObject({ waiting: 0, active: 0, deadLetters: deadLetters.length })
      expect(exitCode).toBe(0)
    },
    TIMEOUT_MS,
  )
})

it(
  'would show a loss: a queue in memory loses what it took',
  async () => {
    const site = createSite('memory', '', 1_000)
    onTestFinished(site.remove)
    const { queued, delivered } = await runOutbound(site, 3, createRandom(1))
    expect(queued.filter((id) => !delivered.has(id) && !isRefused(id))).not.toEqual([])
  },
  TIMEOUT_MS,
)

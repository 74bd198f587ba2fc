/** An inbox and a destination of the same name that two processes start at the same time. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { startChild } from '../child.ts'
import { createSite, engines, rounds } from '../engines.ts'
import type { UserSettings } from '../programs/user.ts'

describe.each(engines)('an inbox and a destination on one queue of $engine, in two processes', ({ engine, at }) => {
  it.skipIf(at === undefined)(
    'one of them has it, and the other is refused',
    async () => {
      const sites = Array.from({ length: rounds }, () => createSite(engine, at ?? ''))
      onTestFinished(async () => void (await Promise.all(sites.map((site) => site.remove()))))
      const places = sites.map(({ place }) => place)
      const uses = ['inbox', 'destination'] as const
      const children = uses.map((use) => startChild('user', { places, use } satisfies UserSettings))
      await Promise.all(children.map(({ ready }) => ready))
      const first = new Set<string>()
      for (const { name } of places) {
        const answers = await Promise.all(children.map((child) => child.ask<string | string[]>('next')))
        const winner = uses.findIndex((_, index) => typeof answers[index] !== 'string')
        expect(answers[winner]).toEqual([uses[winner]])
        expect(answers[1 - winner]).toContain(name)
        first.add(uses[winner] as string)
      }
      console.log(`${engine}, uses: ${rounds} rounds, first was ${[...first].join(' or ')}`)
      await Promise.all(children.map((child) => child.close()))
    },
    60_000 + rounds * 30_000, // pg-boss takes 13 s for a round.
  )
})

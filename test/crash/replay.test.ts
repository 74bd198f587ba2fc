/** Processes that die while a replay gives messages to the handlers again: each gets it once, and none is lost. */

import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'vitest'
import type { Replay } from '../../src/receive/history.ts'
import { emptied, startChild } from './child.ts'
import { rounds, testOnEngines } from './engines.ts'
import { readJournal } from './journal.ts'
import { createLoad } from './load.ts'
import type { ReceiverSettings } from './programs/receiver.ts'

const MESSAGES = 300
const CONCURRENCY = 50
/** With one id, before a process goes on to the end. After the fifth, a message that each of them hit would be a dead letter. */
const KILLS = 4
const LOOK_MS = 2

testOnEngines(
  'a replay whose processes die gives each message to the handlers, and few twice',
  async ({ site, random }) => {
    const { place, journal } = site
    const ids = Array.from({ length: MESSAGES }, (_, index) => `${index}`)
    const start = async (replays: string) => {
      const child = startChild('receiver', { place, journal, replays, handlingMs: 2 } satisfies ReceiverSettings)
      return { child, origin: await child.ready }
    }
    const timesOf = (replayId: string): number[] => {
      const written = Map.groupBy(readJournal(journal), ({ id }) => id)
      return ids.map((id) => written.get(`${id}:${replayId}`)?.length ?? 0)
    }
    const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0)

    const { child: first, origin } = await start('none')
    const load = createLoad(origin)
    await Promise.all(ids.map((id) => load.post(id)))
    await load.close()
    await emptied(first)
    expect(await first.ask('handled')).toBe(MESSAGES)
    await first.close()

    for (let killed = 0; killed < rounds; ) {
      const replayId = `from-${killed}`
      const kills = Math.min(KILLS, rounds - killed)
      for (let kill = 0; kill < kills; kill += 1) {
        const { child } = await start(replayId)
        const until = sum(timesOf(replayId)) + random() * ((2 * MESSAGES) / KILLS)
        let isOver = false
        const end = () => {
          isOver = true
        }
        child.ask<Replay>('replay').then(end, () => {})
        while (!isOver && sum(timesOf(replayId)) < until) await wait(LOOK_MS)
        child.kill()
        await child.ended
        expect(site.inspect()).toBe('ok')
      }
      killed += kills
      const { child } = await start(replayId)
      await child.ask<Replay>('replay')
      const { deadLetters } = await emptied(child)
      expect([deadLetters, await child.ask('handled')]).toEqual([0, MESSAGES])
      await child.close()
      const times = timesOf(replayId)
      expect(times.filter((count) => count === 0)).toEqual([])
      // As many again have ended, and their outcomes were being recorded.
      expect(sum(times) - MESSAGES).toBeLessThanOrEqual(kills * 2 * CONCURRENCY)
    }
  },
)

/** Two destinations on one queue, one of which is killed while the circuit of its URL is closed, open, half-open or at its ramp. */

import { createServer, type ServerResponse } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { UrlHealth } from '../../../src/send/circuit.ts'
import { emptied, startChild } from '../child.ts'
import { createSite, engines, rounds, seed, type TestedEngine } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { listen } from '../programs/answers.ts'
import type { DestinationSettings } from '../programs/destination.ts'
import { createRandom } from '../random.ts'

const AT_ONCE = 4
const MESSAGES = 300
const CONCURRENCY = 50
/** Those that it was posting, and those whose completion the engine had not stored yet. */
const MOST_TWICE = 2 * CONCURRENCY
const DOWN_MS = 100
const UP_MS = 20

const STATES = ['closed', 'open', 'half_open', 'ramp'] as const

interface Result {
  readonly arrived: number
  /** How many arrived more than once. */
  readonly twice: number
}

async function run(
  { engine, at }: TestedEngine,
  state: (typeof STATES)[number],
  random: () => number,
): Promise<Result> {
  const site = createSite(engine, at ?? '')
  const arrivals = new Map<string, number>()
  let isUp = state === 'closed'
  const server = createServer(async (request, response) => {
    const body = (await json(request).catch(() => undefined)) as { messageId: string } | undefined
    if (body !== undefined) setTimeout(answer, isUp ? UP_MS : DOWN_MS, response, body.messageId)
  })
  function answer(response: ServerResponse, id: string): void {
    if (isUp) arrivals.set(id, (arrivals.get(id) ?? 0) + 1)
    response.writeHead(isUp ? 200 : 503).end()
  }
  const origin = await listen(server)
  const { place, journal } = site
  const start = (by: string, messages: number) =>
    startChild('destination', {
      place,
      url: `${origin}/`,
      journal,
      by,
      messages,
    } satisfies DestinationSettings)

  try {
    const killed = start('killed', MESSAGES)
    await killed.ready
    const other = start('other', 0)
    await other.ready
    /** Or the other process has sent all messages, so that none is left to probe with. */
    const reaches = async (wanted: UrlHealth['circuit']): Promise<void> => {
      const isDone = () => arrivals.size === MESSAGES
      while ((await killed.ask<UrlHealth[]>('urls'))[0]?.circuit !== wanted && !isDone()) await wait(5)
    }
    await reaches(state === 'ramp' ? 'open' : state)
    if (state === 'ramp') {
      isUp = true
      await reaches('closed')
    }
    await wait(random() * 50)
    killed.kill()
    await killed.ended
    isUp = true
    await emptied(other)
    expect(await other.ask('deadLetters')).toEqual([])
    await other.close()
    expect(readJournal(journal).filter(({ id }) => !arrivals.has(id))).toEqual([])
  } finally {
    server.closeAllConnections()
    server.close()
    await site.remove()
  }
  return { arrived: arrivals.size, twice: [...arrivals.values()].filter((count) => count > 1).length }
}

describe.concurrent.each(engines)('a circuit of a destination on $engine', (tested) => {
  it.skipIf(tested.at === undefined)(
    'loses no message of a process that is killed in any of its states, and posts only those again that were not stored as complete',
    async () => {
      const random = createRandom(seed)
      const results: Result[] = []
      for (let done = 0; done < rounds * STATES.length; done += AT_ONCE) {
        const states = STATES.slice(0, Math.min(AT_ONCE, rounds * STATES.length - done))
        results.push(...(await Promise.all(states.map((state) => run(tested, state, random)))))
      }
      const sum = (key: keyof Result): number => results.reduce((total, result) => total + result[key], 0)
      console.log(
        `${tested.engine}, circuit: ${results.length} kills, ${sum('arrived')} arrived, ${sum('twice')} twice`,
      )
      for (const { twice } of results) expect(twice).toBeLessThanOrEqual(MOST_TWICE)
    },
    60_000 + rounds * 60_000,
  )
})

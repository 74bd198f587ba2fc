/** Two destinations on one queue, one of which is killed while the circuit of its URL is closed, open, half-open or at its ramp. */

import { createServer } from 'node:http'
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

const MESSAGES = 300
const CONCURRENCY = 50
/** Those that it was posting, and those whose completion the engine had not stored yet. */
const MAX_TWICE = 2 * CONCURRENCY
const DOWN_MS = 100
const UP_MS = 20

const STATES = ['closed', 'open', 'half_open', 'ramp'] as const

/** Returns how often each message arrived. */
async function run({ engine, at }: TestedEngine, state: (typeof STATES)[number], random: () => number) {
  const site = createSite(engine, at ?? '')
  const arrivals = new Map<string, number>()
  let isUp = state === 'closed'
  const server = createServer(async (request, response) => {
    const body = (await json(request).catch(() => undefined)) as { messageId: string } | undefined
    if (body === undefined) return
    await wait(isUp ? UP_MS : DOWN_MS)
    if (isUp) arrivals.set(body.messageId, (arrivals.get(body.messageId) ?? 0) + 1)
    response.writeHead(isUp ? 200 : 503).end()
  })
  const url = `${await listen(server)}/`
  const { place, journal } = site
  async function start(by: string, messages: number) {
    const child = startChild('destination', { place, url, journal, by, messages } satisfies DestinationSettings)
    await child.ready
    return child
  }

  try {
    const [killed, other] = [await start('killed', MESSAGES), await start('other', 0)]
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
  return [...arrivals.values()]
}

describe.concurrent.each(engines)('a destination on $engine', (tested) => {
  it.skipIf(tested.at === undefined)(
    'that is killed in any state of its circuit loses no message, and only those are posted again that were not stored as complete',
    { timeout: 60_000 + rounds * 60_000 },
    async () => {
      const random = createRandom(seed)
      for (let round = 0; round < rounds; round += 1) {
        const results = await Promise.all(STATES.map((state) => run(tested, state, random)))
        const twice = results.map((counts) => counts.filter((count) => count > 1).length)
        expect(Math.max(...twice)).toBeLessThanOrEqual(MAX_TWICE)
      }
    },
  )
})

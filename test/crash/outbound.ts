/** A destination that is killed over and over while it delivers, and what came of it. */

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import type { QueueCounts } from '../../src/queues/queue.ts'
import { emptied, startChild } from './child.ts'
import type { Site } from './engines.ts'
import { readJournal } from './journal.ts'
import { secret } from './load.ts'
import type { DestinationSettings } from './programs/destination.ts'
import { playRounds, type Round } from './rounds.ts'

/** What came of it. */
export interface Outcome {
  /** Those whose `send()` resolved. */
  readonly queued: readonly string[]
  /** Those that the endpoint answered 200. */
  readonly delivered: ReadonlySet<string>
  /** Each with its reason. */
  readonly dead: readonly string[]
  readonly inspections: ReadonlySet<string>
  readonly counts: QueueCounts
  readonly exitCode: number | null
}

/** More than can be posted in a round before the process is killed. */
const MESSAGES = 300
/** How many posts of a hundred are answered 503. */
const FAILING = 5

/** Every fiftieth message is refused for good. */
export function isRefused(id: string): boolean {
  return id.endsWith('7') && Number(id.split('-').at(-1)) % 50 === 7
}

/** Makes the rounds, then lets everything be delivered. */
export async function playOutbound(site: Site, rounds: number, random: () => number): Promise<Outcome> {
  const journal = join(site.folder, 'journal')
  const delivered = new Set<string>()
  const inspections = new Set<string>()
  let posted = () => {}

  const endpoint = createServer(async (request, response) => {
    try {
      const { messageId } = (await json(request)) as { messageId: string }
      answer(response, messageId)
    } catch {
      response.destroy() // Its sender died with half of it.
    }
  })
  await new Promise<void>((resolve) => void endpoint.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`

  function answer(response: ServerResponse, id: string): void {
    const status = isRefused(id) ? 400 : random() * 100 < FAILING ? 503 : 200
    if (status === 200) delivered.add(id)
    response.writeHead(status).end()
    posted()
  }

  const start = (round: number) =>
    startChild('destination', {
      place: site.place,
      url,
      secret,
      journal,
      by: `round-${round}`,
      messages: round > rounds ? 0 : MESSAGES,
    } satisfies DestinationSettings)

  async function play({ child, killAfter }: Round): Promise<void> {
    let posts = 0
    posted = () => {
      posts += 1
      if (posts === killAfter) child.kill()
    }
    await child.ended
  }

  await playRounds({ rounds, random, start, play, inspect: () => void inspections.add(site.inspect()) })
  const last = start(rounds + 1)
  await last.ready
  const counts = await emptied(last)
  const dead = await last.ask<string[]>('dead')
  const exitCode = await last.close()
  endpoint.close()
  inspections.add(site.inspect())
  return { queued: readJournal(journal).map(({ id }) => id), delivered, dead, inspections, counts, exitCode }
}

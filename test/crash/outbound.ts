/** Kills a destination over and over while it delivers, and reports what arrived. */

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import type { QueueCounts } from '../../src/queues/health.ts'
import { emptied, startChild } from './child.ts'
import type { Site } from './engines.ts'
import { readJournal } from './journal.ts'
import { secret } from './load.ts'
import type { DestinationSettings } from './programs/destination.ts'
import { type Round, runRounds } from './rounds.ts'

/** What arrived. */
export interface OutboundResult {
  /** The ids of messages whose `send()` resolved. */
  readonly queued: readonly string[]
  /** The ids that the endpoint answered with 200. */
  readonly delivered: ReadonlySet<string>
  /** Each an id and its reason. */
  readonly deadLetters: readonly string[]
  readonly inspections: ReadonlySet<string>
  readonly counts: QueueCounts
  readonly exitCode: number | null
}

/** More than can be posted in a round before the process is killed. */
const MESSAGES = 300
/** How many posts of a hundred are answered 503. */
const FAILING = 5

/** Whether the endpoint refuses a message for good: every fiftieth. */
export function isRefused(id: string): boolean {
  return id.endsWith('7') && Number(id.split('-').at(-1)) % 50 === 7
}

/** Runs the rounds, then waits until each message is delivered or a dead letter. */
export async function runOutbound(site: Site, rounds: number, random: () => number): Promise<OutboundResult> {
  const journal = join(site.folder, 'journal')
  const delivered = new Set<string>()
  const inspections = new Set<string>()
  let posted = () => {}

  const endpoint = createServer(async (request, response) => {
    try {
      const { messageId } = (await json(request)) as { messageId: string }
      answer(response, messageId)
    } catch {
      response.destroy() // Its sender was killed in the middle.
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

  async function run({ child, killAfter }: Round): Promise<void> {
    let posts = 0
    posted = () => {
      posts += 1
      if (posts === killAfter) child.kill()
    }
    await child.ended
  }

  await runRounds({ rounds, random, start, run, inspect: () => void inspections.add(site.inspect()) })
  const last = start(rounds + 1)
  await last.ready
  const counts = await emptied(last)
  const deadLetters = await last.ask<string[]>('deadLetters')
  const exitCode = await last.close()
  endpoint.close()
  inspections.add(site.inspect())
  return { queued: readJournal(journal).map(({ id }) => id), delivered, deadLetters, inspections, counts, exitCode }
}

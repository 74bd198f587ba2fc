/** A destination that is killed over and over while it delivers. */

import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { expect } from 'vitest'
import { emptied, startChild } from './child.ts'
import { rounds, type Site, testOnEngines } from './engines.ts'
import { readJournal } from './journal.ts'
import { listen } from './programs/answers.ts'
import type { DestinationSettings } from './programs/destination.ts'
import { type Round, runRounds } from './rounds.ts'

/** More than can be posted in a round before the process is killed. */
const MESSAGES = 300
/** How many posts of a hundred are answered 503. */
const FAILING = 5

function isRefused(id: string): boolean {
  return id.endsWith('7') && Number(id.split('-').at(-1)) % 50 === 7
}

/** Runs the rounds, then waits until each message is delivered or a dead letter. */
async function runOutbound(site: Site, random: () => number) {
  const { place, journal } = site
  const delivered = new Set<string>()
  const inspections = new Set<string>()
  let posted = () => {}

  const endpoint = createServer(async (request, response) => {
    try {
      const { messageId: id } = (await json(request)) as { messageId: string }
      const status = isRefused(id) ? 400 : random() * 100 < FAILING ? 503 : 200
      if (status === 200) delivered.add(id)
      response.writeHead(status).end()
      posted()
    } catch {
      response.destroy() // Its sender was killed in the middle.
    }
  })
  const url = `${await listen(endpoint)}/`

  function start(round: number) {
    const settings = { place, url, journal, by: `round-${round}`, messages: round > rounds ? 0 : MESSAGES }
    return startChild('destination', settings satisfies DestinationSettings)
  }

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

const TITLE =
  'a destination that is killed over and over delivers every message that it accepted, or lists it as a dead letter'
testOnEngines(TITLE, async ({ site, random }) => {
  const { queued, delivered, deadLetters, inspections, ...end } = await runOutbound(site, random)
  const listed = new Set(deadLetters)
  expect(queued.filter((id) => !delivered.has(id) && !listed.has(`${id} refused`))).toEqual([])
  expect(deadLetters.filter((line) => !(line.endsWith(' refused') && isRefused(line.split(' ')[0] ?? '')))).toEqual([])
  expect(listed.size).toBe(deadLetters.length)
  expect(inspections).toEqual(new Set(['ok']))
  expect(end).toMatchObject({ counts: { waiting: 0, active: 0, deadLetters: listed.size }, exitCode: 0 })
})

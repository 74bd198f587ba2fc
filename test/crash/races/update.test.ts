/** A destination that moves to another URL and secret while it sends, is disabled, killed, and started again. */

import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import { verify } from '../../../src/index.ts'
import type { QueueCounts } from '../../../src/store/health.ts'
import { emptied, startChild } from '../child.ts'
import { createSite, rounds, seed } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { listen } from '../programs/answers.ts'
import type { DestinationSettings } from '../programs/destination.ts'
import { createRandom } from '../random.ts'

/** At a time: most of a round is waiting for the ten seconds that held messages are held. */
const AT_ONCE = 5
/** More than are posted before it is disabled, also when the machine is busy. */
const MESSAGES = 2_000
/** The posts that may be under way. */
const CONCURRENCY = 50
const ANSWERS_AFTER_MS = 150
const MOVE_WITHIN_MS = 200

async function run(random: () => number): Promise<number> {
  const site = createSite('sqlite', '')
  onTestFinished(site.remove)
  const posts: { readonly path: string; readonly id: string }[] = []
  const server = createServer(async (request, response) => {
    const path = request.url ?? ''
    const body = await buffer(request).catch(() => undefined) // Its sender may be killed in the middle.
    if (body === undefined) return
    const isSigned = verify(body, `${request.headers['x-signature']}`, path)
    posts.push({ path: isSigned ? path : 'the wrong secret', id: JSON.parse(body.toString()).messageId })
    setTimeout(() => response.end(), ANSWERS_AFTER_MS)
  })
  const origin = await listen(server)
  onTestFinished(() => void server.close())
  const [old, next] = ['/old', '/new'].map((path) => ({
    url: `${origin}${path}`,
    secret: path,
  })) as [{ url: string; secret: string }, { url: string; secret: string }]
  const common = { place: site.place, journal: site.journal }

  const first = startChild('destination', {
    ...common,
    ...old,
    next,
    by: 'first',
    messages: MESSAGES,
  } satisfies DestinationSettings)
  await first.ready
  await wait(random() * MOVE_WITHIN_MS)
  await first.ask('move')
  const moved = posts.length
  while (posts.at(-1)?.path !== '/new' && posts.length < MESSAGES) await wait(5)
  await wait(random() * MOVE_WITHIN_MS)
  await first.ask('disable')
  const disabledAt = posts.length
  while ((await first.ask<QueueCounts>('counts')).active > 0) await wait(20)
  const held = posts.length
  expect(held - disabledAt).toBeLessThanOrEqual(CONCURRENCY)
  first.kill()
  await first.ended

  const idle = { ...common, ...next, by: 'next', messages: 0 }
  const disabled = startChild('destination', { ...idle, enabled: false } satisfies DestinationSettings)
  await disabled.ready
  while ((await disabled.ask<QueueCounts>('counts')).active > 0) await wait(20)
  expect(posts.length).toBe(held)
  disabled.kill()
  await disabled.ended

  const last = startChild('destination', idle satisfies DestinationSettings)
  await last.ready
  await emptied(last)
  await last.close()
  expect(posts.filter(({ path }) => path !== '/old' && path !== '/new')).toEqual([])
  expect(posts.slice(moved).filter(({ path }) => path === '/old').length).toBeLessThanOrEqual(CONCURRENCY)
  const posted = new Set(posts.map(({ id }) => id))
  expect(readJournal(site.journal).filter(({ id }) => !posted.has(id))).toEqual([])
  return posts.length - held
}

it(
  'a destination on sqlite: each post has the secret of its URL, none is sent while it is disabled, and none is lost',
  async () => {
    const random = createRandom(seed)
    let held = 0
    for (let left = rounds; left > 0; left -= AT_ONCE) {
      const counts = await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, () => run(random)))
      held += counts.reduce((sum, count) => sum + count)
    }
    console.log(`update: ${rounds} rounds, ${held} messages held`)
    expect(held).toBeGreaterThan(0)
  },
  60_000 + rounds * 10_000,
)

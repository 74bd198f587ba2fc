/** The simulated day of `bench/simulate`, a few hours of it: what it promises of outages, and that a seed decides all of it. */

import { expect, test } from 'vitest'
import { type Day, episode, findEffect, HOUR, runDay } from '../bench/simulate/days.ts'

const PER_SECOND = 1
const HOURS: Day = {
  hours: 2.5,
  urls: 1,
  episodes: [
    episode('503 for an hour', '', 0.25, HOUR),
    episode('hangs for half an hour', '', 1.75, HOUR / 2, () => undefined),
  ],
}

test('through long outages a destination posts little, and delivers everything soon afterwards', async () => {
  const samples = await runDay(HOURS, PER_SECOND, 1)
  for (const each of HOURS.episodes) {
    const { postsPerArrival, sentSoon, untried } = findEffect(each, HOURS, samples, PER_SECOND)
    expect({ name: each.name, postsPerArrival, sentSoon, untried }).toSatisfy(
      () => postsPerArrival > 0 && postsPerArrival <= 0.1 && sentSoon >= 0.95 && untried === 0,
    )
  }
  const last = samples.at(-1)
  expect(last).toMatchObject({ arrived: HOURS.hours * 3_600 * PER_SECOND + 1, failed: 0 })
  expect(last?.waiting).toBeLessThan(2 * PER_SECOND)
})

test('the same seed simulates the same day, another one another day', async () => {
  const run = async (seed: number) =>
    (await runDay({ ...HOURS, hours: 0.4 }, PER_SECOND, seed)).map(({ mb: _, ...sample }) => sample)
  const [first, again, other] = [await run(1), await run(1), await run(2)]
  expect(again).toEqual(first)
  expect(other).not.toEqual(first)
})

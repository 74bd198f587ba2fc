/** What holds a message: the circuits of the URLs that may still accept it. */

import { expect, it } from 'vitest'
import { findRemaining, isHeld } from '../../src/page/retry-times.ts'
import type { Row, UrlLine } from '../../src/wire.ts'

const urls = (...circuits: UrlLine['circuit'][]) =>
  circuits.map((circuit, index): UrlLine => ({ url: `https://${index}.example/`, circuit, delivered: 0, failed: 0 }))

const waiting: Row = {
  ...{ id: 1, at: 0, kind: 'sent', part: 'shop', state: 'waiting', bytes: 2, attempts: 1 },
  finalUrls: ['https://1.example/'],
}

it.each([
  ['a destination without circuits', [], [[], 0]],
  ['one that is open', ['open'], [['0'], 0]],
  ['one of two, of which the other gave a final response', ['open', 'closed'], [['0'], 0]],
  ['two of four, of which one gave a final response', ['open', 'open', 'half_open', 'open'], [['0', '3'], 1]],
] as const)('the open circuits of URLs that may accept it: %s', (_name, circuits, expected) => {
  const { open, others } = findRemaining(urls(...circuits), waiting)

  expect([open.map(({ url }) => url.slice(8, 9)), others]).toEqual(expected)
})

it.each([
  ['whose queue is not counted yet', undefined, false],
  ['with a circuit that is closed', { urls: urls('closed') }, false],
  ['whose one remaining circuit is open', { urls: urls('open', 'closed') }, true],
  ['with a URL that is tried beside one that is held', { urls: urls('open', 'open', 'closed') }, false],
  ['of a destination that is disabled', { urls: urls('closed'), isOff: true }, true],
] as const)('a message is held or not: one %s', (_name, status, expected) => {
  const counts = { part: 'shop', status: 'ok', waiting: 1, active: 0, deadLetters: 0, oldestDueAgeMs: 0 } as const

  expect(isHeld(waiting, status && { ...counts, ...status })).toBe(expected)
})

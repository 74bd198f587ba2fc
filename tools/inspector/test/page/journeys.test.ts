/** The rows of one message, joined. */

import { expect, it } from 'vitest'
import { describe as describeRows, findJourney, type Journey, joinRows } from '../../src/page/journeys.ts'
import type { Row } from '../../src/wire.ts'

let count = 0

function rowOf(kind: Row['kind'], messageIds: readonly string[] | undefined, more: Partial<Row> = {}): Row {
  count += 1
  const part = { collected: 'collector', sent: 'shop', received: 'app' }[kind]
  const ids = messageIds && { messageIds }
  return { id: count, at: count, kind, part, state: 'done', bytes: 1, attempts: 1, ...ids, ...more }
}

function pathsOf(journeys: readonly Journey[]): string[] {
  return journeys.map(
    ({ rows, current }) => `${rows.map(({ part }) => part).join(' > ')}: ${current.part} ${current.state}`,
  )
}

it('are one journey for each message of a batch, the newest first, in the order of their way', () => {
  const sent = ['a', 'b'].map((id) => rowOf('sent', [id], { name: id, type: 'track' }))
  const request = rowOf('collected', ['a', 'b'], { type: 'batch' })
  const received = ['b', 'a'].map((id) => rowOf('received', [id], { name: id, type: 'track' }))
  const journeys = joinRows([...received, request, ...sent])
  expect(pathsOf(journeys)).toEqual(['collector > shop > app: app done', 'collector > shop > app: app done'])
  expect(journeys.map(({ id, at, rows }) => [id, at, describeRows(rows).name])).toEqual([
    [sent[1]?.id, sent[1]?.at, 'b'],
    [sent[0]?.id, sent[0]?.at, 'a'],
  ])
})

it.each<[string, Partial<Row>[], string]>([
  ['at its end, when all is done', [{}, {}], 'app done'],
  ['where nothing retries it any more', [{ state: 'dead' }, { state: 'failed' }], 'shop dead'],
  ['where it is tried again', [{ state: 'waiting' }, { state: 'failed' }], 'shop waiting'],
  ['in the inbox', [{}, { state: 'waiting' }], 'app waiting'],
  ['skipped by one destination, handled behind another', [{ state: 'skipped' }, {}], 'app done'],
  ['ignored by the receiver', [{}, { state: 'ignored' }], 'app ignored'],
  ['handled by one receiver, ignored by another', [{}, {}, { state: 'ignored', part: 'z' }], 'app done'],
])('a message is %s', (_, [sent, ...received], expected) => {
  const rows = [
    rowOf('collected', ['m']),
    rowOf('sent', ['m'], sent),
    ...received.map((more) => rowOf('received', ['m'], more)),
  ]
  expect(pathsOf(joinRows(rows))[0]).toMatch(new RegExp(`: ${expected}$`))
})

it('a message that every destination skips is one journey', () => {
  const skipped = ['shop', 'crm'].map((part) => rowOf('sent', ['m'], { part, state: 'skipped' }))
  expect(pathsOf(joinRows([rowOf('collected', ['m']), ...skipped]))).toEqual(['collector > crm > shop: shop skipped'])
})

it('without an id, and with another one, stay by themselves', () => {
  const refused = rowOf('received', undefined, { state: 'refused' })
  const named = rowOf('received', [String(refused.id)])
  const request = rowOf('collected', ['elsewhere'])
  expect(pathsOf(joinRows([refused, named, request]))).toEqual([
    'collector: collector done',
    'app: app done',
    'app: app refused',
  ])
})

it('a copy of a replay stays by itself', () => {
  const rows = [
    rowOf('collected', ['m']),
    rowOf('received', ['m']),
    rowOf('received', ['m'], { replayId: 'fix-42', state: 'dead' }),
  ]
  expect(pathsOf(joinRows(rows))).toEqual(['app: app dead', 'collector > app: app done'])
})

it('a request some of whose calls were refused is in the list, too', () => {
  const request = rowOf('collected', ['m'], { refusedCalls: 1 })
  expect(pathsOf(joinRows([request, rowOf('sent', ['m'])]))).toEqual([
    'collector > shop: shop done',
    'collector: collector done',
  ])
})

it('one that has not changed stays the same object', () => {
  const [one, other] = [rowOf('sent', ['one']), rowOf('sent', ['other'])]
  const before = new Map(joinRows([one, other]).map((journey) => [journey.id, journey]))
  const [last, first] = joinRows([one, { ...other, state: 'waiting' }], before)
  expect([first === before.get(one.id), last === before.get(other.id)]).toEqual([true, false])
})

it('are found by any of their rows, a request by itself', () => {
  const [request, sent, received] = [rowOf('collected', ['m']), rowOf('sent', ['m']), rowOf('received', ['m'])]
  const journeys = joinRows([request, sent, received])
  const both = [sent, received].map(({ id }) => findJourney(journeys, id)?.rows)
  expect(both).toEqual([journeys[0]?.rows, journeys[0]?.rows])
  expect(findJourney(journeys, sent.id)).toBe(journeys[0])
  expect(findJourney(journeys, received.id)?.current).toBe(received)
  expect(findJourney(journeys, request.id)?.rows).toEqual([request])
  expect(findJourney(journeys, 9_999)).toBeUndefined()
})

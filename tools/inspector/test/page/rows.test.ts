/** The rows of the list: joined to journeys, filtered, and held; and the attempts of a timeline, folded. */

import { expect, it } from 'vitest'
import { countFilters, filterOf, keptRows, withFilter } from '../../src/page/filter.ts'
import { describe as describeRows, findJourney, type Journey, joinRows, journeyOf } from '../../src/page/journeys.ts'
import { foldRepeats } from '../../src/page/repeats.ts'
import { isHeld } from '../../src/page/retry-times.ts'
import type { Row, Step, UrlLine } from '../../src/wire.ts'

let count = 0

function rowOf(kind: Row['kind'], messageIds: readonly string[] | undefined, more: Partial<Row> = {}): Row {
  count += 1
  const part = { collected: 'collector', sent: 'shop', received: 'app' }[kind]
  const ids = messageIds && { messageIds }
  return { id: count, at: count, kind, part, state: 'done', bytes: 1, attempts: 1, ...ids, ...more }
}

function pathsOf(journeys: readonly Journey[]): string[] {
  const textOf = ({ part, state }: Row) => `${part} ${state}`
  return journeys.map(({ rows, current }) => `${rows.map(({ part }) => part).join(' > ')}: ${textOf(current)}`)
}

it('the rows of a batch are one journey for each message of a batch, the newest first, in the order of their way', () => {
  const sent = ['a', 'b'].map((id) => rowOf('sent', [id], { name: id, type: 'track' }))
  const request = rowOf('collected', ['a', 'b'], { type: 'batch' })
  const received = ['b', 'a'].map((id) => rowOf('received', [id], { name: id, type: 'track' }))
  const journeys = joinRows([...received, request, ...sent])
  expect(pathsOf(journeys)).toEqual(['collector > shop > app: app done', 'collector > shop > app: app done'])
  const shown = journeys.map(({ id, at, rows }) => `${id} ${at} ${describeRows(rows).name}`)
  expect(shown).toEqual([sent[1], sent[0]].map((row) => `${row?.id} ${row?.at} ${row?.name}`))
  const again = joinRows([...received, request, ...sent], new Map(journeys.map((each) => [each.id, each])))
  expect(again.every((each, index) => each === journeys[index])).toBe(true)
  expect(findJourney(journeys, request.id)?.rows).toEqual([request])
  expect(findJourney(journeys, received[0]?.id as number)).toMatchObject({ id: sent[1]?.id, current: received[0] })
})

it.each<[string, Partial<Row>[], string]>([
  ['at its end, when all is done', [{}, {}], 'app done'],
  ['where nothing retries it any more', [{ state: 'dead' }, { state: 'failed' }], 'shop dead'],
  ['where it is tried again', [{ state: 'waiting' }, { state: 'failed' }], 'shop waiting'],
  ['skipped by one destination, handled behind another', [{ state: 'skipped' }, {}], 'app done'],
  ['handled by one receiver, ignored by another', [{}, {}, { state: 'ignored', part: 'z' }], 'app done'],
])('a message is %s', (_, [sent, ...received], expected) => {
  const outbound = [rowOf('collected', ['m']), rowOf('sent', ['m'], sent)]
  const inbound = received.map((more) => rowOf('received', ['m'], more))
  expect(pathsOf(joinRows([...outbound, ...inbound]))[0]).toMatch(new RegExp(`: ${expected}$`))
})

it('rows without an id, and with another one, stay by themselves', () => {
  const partly = rowOf('collected', ['m'], { refusedCalls: 1 })
  const refused = rowOf('received', undefined, { state: 'refused' })
  const named = rowOf('received', [String(refused.id)])
  const request = rowOf('collected', ['elsewhere'])
  const paths = ['collector: collector done', 'app: app done', 'app: app refused']
  expect(pathsOf(joinRows([refused, named, request]))).toEqual(paths)
  const joined = ['collector > shop: shop done', 'collector: collector done']
  expect(pathsOf(joinRows([partly, rowOf('sent', ['m'])])).sort()).toEqual(joined)
})

it('a copy of a replay stays by itself', () => {
  const rows = [rowOf('collected', ['m']), rowOf('received', ['m'])]
  const copy = rowOf('received', ['m'], { replayId: 'fix-42', state: 'dead' })
  expect(pathsOf(joinRows([...rows, copy]))).toEqual(['app: app dead', 'collector > app: app done'])
})

const row: Row = {
  ...{ id: 7, at: 0, kind: 'received', part: 'Shop', state: 'refused', bytes: 1, attempts: 0 },
  ...{ type: 'track', name: 'Order Completed', user: 'Ada@shop.example', status: 401, code: 'invalid_signature' },
}

const passes = (search: string, given = row) => filterOf(new URLSearchParams(search))(journeyOf([given]))

const passing = [
  ...['', 'state=refused', 'type=track', 'part=shop', 'event=order', 'user=ada', 'status=401', 'status=4xx'],
  ...['text=ADA+completed', 'text=invalid+signature', 'text=invalid_signature', 'other=1', 'state='],
]
const failing = [
  ...['state=done', 'type=none', 'part=sho', 'event=cart', 'user=bob', 'status=5xx', 'text=ada+cart'],
  'state=refused&user=bob',
]
it.each([...passing, ...failing])('the filter %s lets the row pass, or leaves it out', (search) => {
  expect(passes(search)).toBe(passing.includes(search))
})

it('a filter by state is about where the message is now, unless it names the part', () => {
  const rows = [row, { ...row, id: 8, part: 'Blog', state: 'done' } as const]
  const passes = (search: string) => filterOf(new URLSearchParams(search))(journeyOf(rows))
  const searches = ['state=refused', 'state=done', 'state=done&part=blog', 'state=done&part=shop', 'part=blog']
  expect(searches.map(passes)).toEqual([true, false, true, false, true])
  const query = withFilter(new URLSearchParams('other=1'), 'part', 'blog')
  const texts = [query, withFilter(query, 'part', '')].map(String)
  expect([countFilters(query), ...texts]).toEqual([1, 'other=1&part=blog', 'other=1'])
})

it('the list holds as many as the inspector keeps, the latest arrival first: refused requests push no messages out', () => {
  const rows = Array.from({ length: 12 }, (_, id): Row => {
    const row = { id, at: -id, kind: 'received', part: 'shop', state: 'done', bytes: 0, attempts: 0 } as const
    return id < 4 ? row : { ...row, isRefused: true }
  })
  const ids = keptRows(rows, { messages: 3, refused: 2 }).map(({ id }) => id)
  expect(ids).toEqual([1, 2, 3, 10, 11])
})

const failed = (attempt: number, message = 'down'): Step => ({
  ...{ at: attempt * 1_000, what: 'failed', attempt, durationMs: attempt, runs: [] },
  error: { code: 'handler_failed', message, stack: `Error: at ${attempt}` },
  next: attempt * 1_000 + 500,
})

const round = (at: number, status: number): Step[] => [
  { at, what: 'attempt', attempt: { url: 'http://a', at, durationMs: at, ok: false, status, body: 'no' } },
  { at: at + 1, what: 'round', status: 'retrying', retryAt: at + 100 },
]
const sizes = (steps: readonly Step[]) =>
  foldRepeats(steps).map(({ steps, repeats }) => (repeats === undefined ? steps.length : [repeats, steps.length]))

it('a timeline folds rounds with the same result between the first and the last of them', () => {
  const steps = [1, 2, 3, 4].map((attempt) => failed(attempt))
  expect(foldRepeats(steps)).toEqual([
    { steps: [steps[0]] },
    { steps: [steps[1], steps[2]], repeats: 2 },
    { steps: [steps[3]] },
  ])
})

it('a timeline shows what differs in more than its times: another error, another answer', () => {
  expect(sizes([failed(1), failed(2), failed(3, 'another'), failed(4)])).toEqual([2, 1, 1])
  expect(sizes([1, 2, 3].flatMap((at) => round(at, 503)))).toEqual([2, [1, 2], 2])
  expect(sizes([round(1, 503), round(2, 500), round(3, 503)].flat())).toEqual([2, 2, 2])
  expect(sizes([1, 2, 3].map((at) => ({ at, what: 'redriven' })))).toEqual([3])
})

const urls = (...circuits: UrlLine['circuit'][]) =>
  circuits.map((circuit, index): UrlLine => ({ url: `https://${index}.example/`, circuit, delivered: 0, failed: 0 }))

const waiting: Row = {
  ...{ id: 1, at: 0, kind: 'sent', part: 'shop', state: 'waiting', bytes: 2, attempts: 1 },
  finalUrls: ['https://1.example/'],
}

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

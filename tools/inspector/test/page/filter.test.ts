/** The rows of the list, and its filters. */

import { expect, it } from 'vitest'
import { countFilters, filterOf, keptRows, withFilter } from '../../src/page/filter.ts'
import { journeyOf } from '../../src/page/journeys.ts'
import type { Row } from '../../src/wire.ts'

const row: Row = {
  ...{ id: 7, at: 0, kind: 'received', part: 'Shop', state: 'refused', bytes: 1, attempts: 0 },
  ...{ type: 'track', name: 'Order Completed', user: 'Ada@shop.example', status: 401, code: 'invalid_signature' },
}

const passes = (search: string, given = row) => filterOf(new URLSearchParams(search))(journeyOf([given]))

it.each([
  ...['', 'state=refused', 'type=track', 'part=shop', 'event=order', 'user=ada', 'status=401', 'status=4xx'],
  ...['text=ADA+completed', 'text=invalid+signature', 'text=invalid_signature', 'other=1', 'state='],
])('the filter %s lets the row pass', (search) => {
  expect(passes(search)).toBe(true)
})

it.each([
  ...['state=done', 'type=none', 'part=sho', 'event=cart', 'user=bob', 'status=5xx', 'text=ada+cart'],
  'state=refused&user=bob',
])('the filter %s leaves the row out', (search) => {
  expect(passes(search)).toBe(false)
})

it('finds bodies that are no message', () => {
  const { type: _type, name: _name, user: _user, status: _status, ...bare } = row
  expect(passes('type=none', bare)).toBe(true)
  for (const search of ['event=order', 'user=a', 'status=4', 'type=track']) expect(passes(search, bare)).toBe(false)
})

it('is set and cleared one by one', () => {
  const one = withFilter(new URLSearchParams('text=a'), 'state', 'dead')
  expect([one.toString(), countFilters(one)]).toEqual(['text=a&state=dead', 2])
  expect(withFilter(one, 'text', '').toString()).toBe('state=dead')
})

it('holds as many as the inspector keeps, the newest first: refused requests push no messages out', () => {
  const rows = Array.from({ length: 12 }, (_, id): Row => {
    const row = { id, at: 0, kind: 'received', part: 'shop', state: 'done', bytes: 0, attempts: 0 } as const
    return id < 4 ? row : { ...row, isRefused: true }
  })
  const ids = keptRows(rows, { messages: 3, refused: 2 }).map(({ id }) => id)
  expect(ids).toEqual([11, 10, 3, 2, 1])
})

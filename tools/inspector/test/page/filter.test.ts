/** The rows of the list, and its filters. */

import { expect, it } from 'vitest'
import { countFilters, filterOf, keptRows, withFilter } from '../../src/page/filter.ts'
import { journeyOf } from '../../src/page/journeys.ts'
import type { Row } from '../../src/wire.ts'

const row: Row = {
  id: 7,
  at: 0,
  kind: 'received',
  part: 'Shop',
  state: 'refused',
  type: 'track',
  name: 'Order Completed',
  user: 'Ada@shop.example',
  status: 401,
  code: 'invalid_signature',
  bytes: 1,
  attempts: 0,
}

it.each([
  ['', true],
  ['state=refused', true],
  ['state=done', false],
  ['type=track', true],
  ['type=none', false],
  ['part=shop', true],
  ['part=sho', false],
  ['event=order', true],
  ['event=cart', false],
  ['user=ada', true],
  ['user=bob', false],
  ['status=401', true],
  ['status=4xx', true],
  ['status=5xx', false],
  ['text=ADA+completed', true],
  ['text=ada+cart', false],
  ['text=invalid+signature', true],
  ['text=invalid_signature', true],
  ['state=refused&user=bob', false],
  ['other=1', true],
  ['state=', true],
])('%s lets the row pass: %s', (search, passes) => {
  expect(filterOf(new URLSearchParams(search))(journeyOf([row]))).toBe(passes)
})

it('finds bodies that are no message', () => {
  const { type: _type, name: _name, user: _user, status: _status, ...bare } = row
  expect(filterOf(new URLSearchParams('type=none'))(journeyOf([bare]))).toBe(true)
  for (const search of ['event=order', 'user=a', 'status=4', 'type=track']) {
    expect(filterOf(new URLSearchParams(search))(journeyOf([bare]))).toBe(false)
  }
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

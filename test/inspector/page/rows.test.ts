/** Which rows the page holds. */

import { expect, it } from 'vitest'
import { keptRows } from '../../../src/inspector/page/rows.ts'
import type { Row } from '../../../src/inspector/wire.ts'

it('holds as many as the inspector keeps, the newest first: refused requests push no messages out', () => {
  const rows = Array.from({ length: 12 }, (_, id): Row => {
    const row = { id, at: 0, kind: 'received', part: 'shop', state: 'done', bytes: 0, attempts: 0 } as const
    return id < 4 ? row : { ...row, isRefused: true }
  })
  const ids = keptRows(rows, { messages: 3, refused: 2 }).map(({ id }) => id)
  expect(ids).toEqual([11, 10, 3, 2, 1])
})

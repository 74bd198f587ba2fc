/** The rows that the page holds: as many as the inspector keeps. */

import type { Row, Setup } from '../wire.ts'

/** Before the bounds are known. */
const ALL: Setup['keep'] = { messages: Number.POSITIVE_INFINITY, refused: Number.POSITIVE_INFINITY }

/** Returns as many as the inspector keeps, the newest first: refused requests push out none but their own. */
export function keptRows(rows: Iterable<Row>, keep: Setup['keep'] = ALL): readonly Row[] {
  const left = { ...keep }
  return [...rows]
    .sort((one, other) => other.id - one.id)
    .filter(({ isRefused = false }) => {
      const pool = isRefused ? 'refused' : 'messages'
      left[pool] -= 1
      return left[pool] >= 0
    })
}

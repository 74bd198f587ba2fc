/** What is known to lie on damaged pages of the file. SQLite writes nothing more in a transaction that has met one. */

import { CORRUPT, resultOf } from '../protocol/sqlite-file.ts'

/** The numbers of the jobs whose bodies do; `done` where it is the list of those that are done. */
export type Damaged = Set<number | 'done'>

/** Does a step, and notes what it met when it fails of that: the next transaction passes it over. */
export function noting<T>(damaged: Damaged, what: number | 'done', step: () => T): T {
  try {
    return step()
  } catch (error) {
    if (resultOf(error) === CORRUPT) damaged.add(what)
    throw error
  }
}

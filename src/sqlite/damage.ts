/** What is known to lie on damaged pages of a file. SQLite writes nothing more in a transaction that read such a page. */

import { CORRUPT, resultOf } from './file.ts'

/** Names what lies on damaged pages. */
export type Damaged<T> = Set<T>

/** Runs a step. When it meets a damaged page, notes `what`, so that the next transaction can avoid it, and throws. */
export function notingDamage<T, R>(damaged: Damaged<T>, what: T, step: () => R): R {
  try {
    return step()
  } catch (error) {
    if (resultOf(error) === CORRUPT) damaged.add(what)
    throw error
  }
}

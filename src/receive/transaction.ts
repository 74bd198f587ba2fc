/** Calls handlers in the transaction of an attempt or of a batch: what they write commits together with the completion of the messages. */

import type { ClaimedJob, JobTransaction } from '../store/queue-types.ts'
import type { Deadline } from './deadline.ts'
import type { TransactionClient } from './delivery.ts'

/** An attempt whose message is completed in a transaction. */
export interface Member {
  readonly job: ClaimedJob
  readonly deadline: Deadline
  begin(): Promise<JobTransaction>
  /** Returns the note to store with the completed message: which handlers are done, including those with these names. */
  note(...names: readonly string[]): Uint8Array | undefined
  /** The error that ended the transaction, unless a handler threw it. */
  error?: unknown
  /** Set when the database could not begin a transaction: no handler ran, so the attempt does not count. */
  isUncounted?: true
}

/**
 * Calls handlers in a transaction.
 *
 * @param call Calls the handlers. Returns the members that are done, or undefined for all. If it throws, the transaction is rolled back.
 * @param names The names of handlers that are done after `call`, but that the members do not yet list as done.
 */
export async function inTransaction(
  members: readonly [Member, ...Member[]],
  call: (db: TransactionClient) => Promise<readonly Member[] | undefined> | undefined,
  ...names: readonly string[]
): Promise<void> {
  const [{ begin, deadline }] = members
  function fail(error: unknown): never {
    for (const member of members) member.error = error
    throw error
  }
  const transaction = await begin().catch((error) => {
    for (const member of members) member.isUncounted = true
    return fail(error)
  })
  const rollback = (): void => void transaction.rollback()
  const stopIfLate = (): void => {
    const late = members.find(({ deadline }) => deadline.error !== undefined)
    if (late !== undefined) fail(late.deadline.error)
  }
  deadline.signal.addEventListener('abort', rollback, { once: true })
  try {
    stopIfLate()
    const done = (await call(transaction.db as TransactionClient)) ?? members
    stopIfLate()
    for (const member of members) member.deadline.stop() // From now on, the commit determines the result, and the deadline has no effect.
    await transaction.commit(done.map((member) => ({ claim: member.job, log: member.note(...names) }))).catch(fail)
  } catch (error) {
    await transaction.rollback()
    throw error
  } finally {
    deadline.signal.removeEventListener('abort', rollback)
  }
}

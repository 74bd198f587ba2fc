/** The contract of what remembers messages that were handled, types only: claim, confirm, release. */

/** What a claim comes to. */
export type Claim =
  /** It is yours: confirm it when the message was handled, release it when that failed. */
  | Claimed
  /** Somebody handles the message right now. */
  | 'in_progress'
  /** The message was handled within the window. */
  | 'done'

/**
 * A claim under way. It ends by itself when its lease is over, as it does when its process dies. Of confirm and release,
 * what is called second changes nothing.
 */
export interface Claimed {
  /**
   * The message was handled: for the window, the key is done. Changes nothing when the lease is over and somebody else
   * has the key.
   */
  confirm(): void | Promise<void>
  /** It was not: the next to claim the key gets it. Changes nothing when the lease is over and somebody else has it. */
  release(): void | Promise<void>
}

/** Remembers keys. What fails throws or rejects; the message is not handled then, and its sender comes back. */
export interface Dedupe {
  /**
   * Claims a key: of many at once, one gets it.
   *
   * @throws TypeError unless it has 1 to 200 characters; HooklineError `dedupe_unavailable`, or `shutting_down` after
   *   {@link close}.
   */
  claim(key: string): Claim | Promise<Claim>
  /** Ends; what it keeps on disk stays. */
  close(): void | Promise<void>
}

/** The contract of a dedupe store, types only: claim a message, then confirm or release the claim. */

/** The answer to a claim. */
export type Claim =
  /** The key is yours: confirm it when the message is handled, release it when handling failed. */
  | Claimed
  /** Another claim holds the key. */
  | 'in_progress'
  /** The message was handled within the dedupe window. */
  | 'done'

/**
 * A claim that holds a key. It ends when its lease expires, even if its process has died. Only the first call of confirm or release has an
 * effect.
 */
export interface Claimed {
  /** Marks the key as done for the dedupe window. Has no effect once the lease has expired and another claim holds the key. */
  confirm(): void | Promise<void>
  /** Releases the key so that the next claim gets it. Has no effect once the lease has expired and another claim holds it. */
  release(): void | Promise<void>
}

/** Remembers keys of handled messages. When a call throws or rejects, the message is not handled and the sender retries. */
export interface Dedupe {
  /**
   * Claims a key. Of several concurrent claims, only one gets it.
   *
   * @param key A UUID, when a receiver makes the claim.
   */
  claim(key: string): Claim | Promise<Claim>
  /** Closes the store. Called when the receiver is closed. */
  close(): void | Promise<void>
}

/** The contract of a dedupe store, as types only: a receiver claims the key of a message, then confirms or releases the claim. */

/** The result of a claim. */
export type Claim =
  /** The claim succeeded. Confirm it once the message has been handled; release it if handling the message failed. */
  | Claimed
  /** Another claim holds the key. */
  | 'in_progress'
  /** The message was handled within the dedupe window. */
  | 'done'

/**
 * A claim that holds a key. The claim ends when its lease expires, even if its process has died. Only the first call to `confirm` or
 * `release` has an effect.
 */
export interface Claimed {
  /** Marks the key as done for the dedupe window. Has no effect once the lease has expired and another claim holds the key. */
  confirm(): void | Promise<void>
  /** Releases the key so that the next claim gets it. Has no effect once the lease has expired and another claim holds the key. */
  release(): void | Promise<void>
}

/** Remembers the keys of handled messages. When `claim` throws or rejects, the message is not handled and the sender retries. */
export interface Dedupe {
  /**
   * Claims a key. If several claims of the same key are made at the same time, only one of them gets it.
   *
   * @param key Identifies a message. Receivers pass a UUID.
   */
  claim(key: string): Claim | Promise<Claim>
  /** Closes the store. Called when the receiver is closed. */
  close(): void | Promise<void>
}

/** Uses a dedupe store to handle each message only once in a receiver without an inbox. */

import { hasMethods, invalidOption, kindOf, refuseUnknown, requireFunction, requireKey } from '../kit/checks.ts'
import type { Clock } from '../kit/clock.ts'
import { withTimeout } from '../kit/timeout.ts'
import { HooklineError } from '../protocol/error.ts'
import { idOfKey } from '../protocol/id.ts'
import type { ReceivedMessage } from '../protocol/message.ts'
import type { Deadline } from './deadline.ts'
import type { Claim, Claimed, Dedupe } from './dedupe.ts'
import type { Delivery } from './delivery.ts'
import { keyWithin } from './received-delivery.ts'

/** The options of `dedupe`, which determine how duplicates are recognised. */
export interface ReceiverDedupeOptions {
  /** The store that remembers which messages were handled. */
  readonly store: Dedupe
  /**
   * Returns a key that identifies a message. Within the dedupe window of the store, only one of several messages with the same key is
   * handled. The function gets the message as it was before its schema was applied. Default: every message is identified by the id of its
   * delivery.
   */
  key?(message: ReceivedMessage, delivery: Delivery): string
}

export function readDedupe(dedupe: Dedupe | ReceiverDedupeOptions): ReceiverDedupeOptions {
  if (isStore(dedupe)) return { store: dedupe }
  if (typeof dedupe !== 'object' || dedupe === null || !('store' in dedupe)) {
    throw invalidOption('dedupe', 'must be a store or { store, key }', kindOf(dedupe), 'Pass memoryDedupe().')
  }
  refuseUnknown(dedupe, ['store', 'key'], 'dedupe.')
  if (!isStore(dedupe.store)) {
    throw invalidOption('dedupe.store', 'must be a store', kindOf(dedupe.store), 'Pass memoryDedupe().')
  }
  if (dedupe.key !== undefined) requireFunction('dedupe.key', dedupe.key)
  return { ...dedupe }
}

function isStore(value: Dedupe | ReceiverDedupeOptions): value is Dedupe {
  return hasMethods(value, ['claim', 'close'])
}

/** Handles a message once: claims it in the dedupe store, then confirms or releases the claim. */
export class Deduplication {
  readonly #options: ReceiverDedupeOptions
  readonly #clock: Clock
  #held = 0
  #onIdle = (): void => {}

  constructor(options: ReceiverDedupeOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  /** Returns an id that is derived from the result of `key`; undefined without `key`, because the delivery then keeps its own id. */
  idOf(message: ReceivedMessage, delivery: Delivery): string | undefined {
    const { key } = this.#options
    if (key === undefined) return undefined
    const chosen: unknown = key(message, delivery)
    requireKey('dedupe.key', chosen)
    return idOfKey(keyWithin(delivery.source, chosen)) // An id always has the same length, so a key of any length fits the store.
  }

  /**
   * Calls `handle` unless the message was handled before. Returns whether the message was handled before. The claim lasts until `handle`
   * ends, even if the deadline passes first.
   */
  async handleOnce(
    delivery: Delivery,
    deadline: Deadline,
    handle: () => unknown,
    reportLate: (error: HooklineError) => void,
  ): Promise<boolean> {
    deadline.startStage('dedupe')
    const claimed = await this.#claim(delivery.id)
    if (claimed === 'done') return true
    if (claimed === 'in_progress') {
      const text = 'A copy of the message is being handled. Send the message again.'
      throw new HooklineError('duplicate_in_progress', text)
    }
    this.#held += 1
    try {
      await handle()
      await endClaim(claimed, 'confirm', deadline, reportLate)
    } catch (error) {
      await endClaim(claimed, 'release', deadline, reportLate)
      throw error
    } finally {
      this.#held -= 1
      if (this.#held === 0) this.#onIdle()
    }
    return false
  }

  async #claim(id: string): Promise<Claim> {
    try {
      return await this.#options.store.claim(id)
    } catch (cause) {
      const message = 'The dedupe store could not claim the message. Send the message again.'
      throw new HooklineError('dedupe_unavailable', message, { cause })
    }
  }

  async close(graceMs: number): Promise<void> {
    if (this.#held > 0)
      await withTimeout(new Promise<void>((resolve) => (this.#onIdle = resolve)), graceMs, this.#clock)
    await this.#options.store.close()
  }
}

/** Ends a claim. Never throws: an error from the store does not change whether the message was handled, so the error is only reported. */
async function endClaim(
  claimed: Claimed,
  step: 'confirm' | 'release',
  deadline: Deadline,
  reportLate: (error: HooklineError) => void,
): Promise<void> {
  const explain = (cause: unknown): HooklineError => {
    const message = `The dedupe store could not ${step} the claim of a message. See \`cause\` of this error, and check the store.`
    return new HooklineError('dedupe_unavailable', message, { cause })
  }
  try {
    if (deadline.error !== undefined) return await claimed[step]() // The sender already has its answer, so no deadline applies.
    deadline.startStage('confirm')
    await deadline.wait(claimed[step](), (cause) => reportLate(explain(cause)))
  } catch (thrown) {
    const isLate = thrown instanceof HooklineError && thrown === deadline.error
    if (!isLate) reportLate(explain(thrown))
    else if (step === 'confirm') reportLate(thrown) // After a `release`, the error of the handlers is reported instead.
  }
}

/** Handles a message once, without an inbox: claims it, and notes what became of it. */

import type { Claim, Claimed, Dedupe } from '../dedupe/dedupe.ts'
import type { Clock } from '../protocol/clock.ts'
import { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import { refuseUnknown, requireFunction, requireText } from '../protocol/options.ts'
import { jobIdFromKey } from '../queues/job-id.ts'
import { createPatience } from '../queues/patience.ts'
import type { Delivery, OpenDelivery } from './delivery.ts'
import { toError } from './faults.ts'

/** How duplicates are told. */
export interface ReceiverDedupeOptions {
  /** Remembers which messages were handled. */
  readonly store: Dedupe
  /** What makes two messages the same. Default: the delivery's id. Gets the message before a schema shaped it. */
  readonly key?: (message: Message, delivery: Delivery) => string
}

/** Handles each message once. */
export interface Once {
  /**
   * Calls `handle`, unless the message was handled before. The claim is held until `handle` is done, also past the deadline;
   * `handle` throws at once when that has passed.
   *
   * @param tell Gets the error of a message that was handled, or not, where that could not be noted.
   * @throws HooklineError (as a rejection) `duplicate_in_progress`, `dedupe_unavailable`; what `handle` rejects with.
   */
  run(
    message: Message,
    delivery: OpenDelivery,
    handle: () => unknown,
    tell: (error: HooklineError) => void,
  ): Promise<void>
  /** Waits for what is being handled still, at most so many milliseconds. */
  close(graceMs: number): Promise<void>
}

/**
 * Checks the option.
 *
 * @throws TypeError that names it.
 */
export function readDedupe(dedupe: Dedupe | ReceiverDedupeOptions): ReceiverDedupeOptions {
  if (isStore(dedupe)) return { store: dedupe }
  const isOptions = typeof dedupe === 'object' && dedupe !== null
  if (isOptions && 'store' in dedupe) refuseUnknown(dedupe, ['store', 'key'], 'dedupe.')
  if (!isOptions || !isStore(dedupe.store)) {
    throw new TypeError('dedupe: must be a store, for instance memoryDedupe(), or { store, key }.')
  }
  if (dedupe.key !== undefined) requireFunction('dedupe.key', dedupe.key)
  return { ...dedupe }
}

function isStore(value: Dedupe | ReceiverDedupeOptions): value is Dedupe {
  return ['claim', 'close'].every((name) => typeof value?.[name as never] === 'function')
}

/** Makes it. */
export function createOnce({ store, key }: ReceiverDedupeOptions, clock: Clock): Once {
  let held = 0
  let idle: (() => void)[] = []

  function keyOf(message: Message, delivery: OpenDelivery): string {
    if (key === undefined) return delivery.id
    const chosen: unknown = key(message, delivery)
    requireText('dedupe.key: what it returns', chosen)
    return jobIdFromKey(chosen) // However long theirs is.
  }

  async function claim(id: string): Promise<Claim> {
    try {
      return await store.claim(id)
    } catch (cause) {
      throw unavailable('Whether this is a duplicate is not known. Send it again.', cause)
    }
  }

  async function note(claimed: Claimed, what: 'confirm' | 'release'): Promise<HooklineError | undefined> {
    try {
      await claimed[what]()
      return undefined
    } catch (cause) {
      const message = what === 'confirm' ? 'The message was handled' : 'The message was not handled'
      return unavailable(`${message}; that could not be noted.`, cause)
    }
  }

  function letGo(): void {
    held -= 1
    if (held > 0) return
    for (const resume of idle) resume()
    idle = []
  }

  return {
    async run(message, delivery, handle, tell) {
      const id = keyOf(message, delivery)
      delivery.enter('dedupe')
      const claimed = await claim(id)
      if (claimed === 'done') return
      if (claimed === 'in_progress') {
        throw new HooklineError('duplicate_in_progress', 'This message is being handled already. Send it again.')
      }
      held += 1
      let failure: HooklineError | undefined
      try {
        await handle()
        delivery.complete()
        failure = await note(claimed, 'confirm')
      } catch (error) {
        delivery.fail(toError(error))
        failure = await note(claimed, 'release')
        throw error
      } finally {
        letGo()
        if (failure !== undefined) tell(failure)
      }
    },
    async close(graceMs) {
      const patience = createPatience(clock, new AbortController().signal)
      if (held > 0) await patience.waitFor(new Promise<void>((resolve) => idle.push(resolve)), graceMs)
      await store.close()
    },
  }
}

function unavailable(message: string, cause: unknown): HooklineError {
  return new HooklineError('dedupe_unavailable', message, { cause })
}

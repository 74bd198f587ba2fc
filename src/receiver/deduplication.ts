/** Deduplication without an inbox: claims a message in the dedupe store, then confirms or releases the claim. */

import type { Claim, Claimed, Dedupe } from '../dedupe/store.ts'
import type { Delivery } from '../handling/delivery.ts'
import type { FailedRequest } from '../handling/diagnostics.ts'
import { toError } from '../handling/failure.ts'
import type { OpenDelivery } from '../handling/open-delivery.ts'
import type { Tap } from '../handling/tap.ts'
import { HooklineError } from '../message/error.ts'
import { idOfKey } from '../message/id.ts'
import type { ReceivedMessage } from '../message/message.ts'
import { invalidOption, kindOf, refuseUnknown, requireFunction, requireKey } from '../options/checks.ts'
import type { Clock } from '../time/clock.ts'
import { within } from '../time/timeout.ts'

/** How duplicates are recognised. */
export interface ReceiverDedupeOptions {
  /** Remembers which messages were handled. */
  readonly store: Dedupe
  /** Identifies a message: of several with the same key, one is handled. Default: the delivery's id. Gets the message before its schema. */
  key?(message: ReceivedMessage, delivery: Delivery): string
}

export type Deduplication = ReturnType<typeof createDeduplication>

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
  return ['claim', 'close'].every((name) => typeof value?.[name as never] === 'function')
}

export function createDeduplication({ store, key }: ReceiverDedupeOptions, clock: Clock, tap: Tap) {
  let held = 0
  let onIdle = (): void => {}

  function keyOf(message: ReceivedMessage, delivery: OpenDelivery): string {
    if (key === undefined) return delivery.id
    const chosen: unknown = key(message, delivery)
    requireKey('dedupe.key', chosen)
    delivery.id = idOfKey(delivery.within(chosen)) // A key of any length fits the store.
    return delivery.id
  }

  async function claim(id: string): Promise<Claim> {
    try {
      return await store.claim(id)
    } catch (cause) {
      const message = 'The dedupe store could not claim the message. Got an error from it. Send the message again.'
      throw new HooklineError('dedupe_unavailable', message, { cause })
    }
  }

  async function finish(
    claimed: Claimed,
    step: 'confirm' | 'release',
    request: FailedRequest,
    delivery: OpenDelivery,
  ): Promise<void> {
    try {
      await claimed[step]()
    } catch (cause) {
      const message = `The dedupe store could not ${step} the message. Got an error from it. Check the store.`
      tap.failedLate(delivery, new HooklineError('dedupe_unavailable', message, { cause }), request)
    }
  }

  return {
    /** Calls `handle` unless the message was handled before. Holds the claim until it is done, also past the deadline. */
    async run(
      message: ReceivedMessage,
      delivery: OpenDelivery,
      request: FailedRequest,
      handle: () => unknown,
    ): Promise<void> {
      const id = keyOf(message, delivery)
      delivery.enter('dedupe')
      const claimed = await claim(id)
      if (claimed === 'done') {
        delivery.isDuplicate = true
        return
      }
      if (claimed === 'in_progress') {
        const text = 'A message is handled once. Got a copy while the first is being handled. Send the message again.'
        throw new HooklineError('duplicate_in_progress', text)
      }
      held += 1
      try {
        await handle()
        delivery.setHandled()
        await finish(claimed, 'confirm', request, delivery)
      } catch (error) {
        delivery.setFailure(toError(error))
        await finish(claimed, 'release', request, delivery)
        throw error
      } finally {
        if (--held === 0) onIdle()
      }
    },
    async close(graceMs: number): Promise<void> {
      if (held > 0) await within(new Promise<void>((resolve) => (onIdle = resolve)), graceMs, clock)
      await store.close()
    },
  }
}

/** Drops the messages of forgotten users, in all processes of an inbox, until the time that was passed to `forget` has elapsed. */

import type { Clock } from '../kit/clock.ts'
import { readUsers, usersIn } from '../protocol/identity.ts'
import { FOREVER, requireMarks } from '../store/marks.ts'
import type { Queue } from '../store/queue-types.ts'
import type { DeliveryParts } from './received-delivery.ts'
import type { Tap } from './tap.ts'

export class Suppression {
  /** How many messages this process has dropped. */
  count = 0
  readonly #queue: Queue
  readonly #tap: Tap
  readonly #clock: Clock

  constructor(queue: Queue, tap: Tap, clock: Clock) {
    this.#queue = queue
    this.#tap = tap
    this.#clock = clock
  }

  /** @throws TypeError (as a rejection) for a queue without marks. */
  async suppress(ids: string | readonly string[], source: string | undefined, forMs: number): Promise<void> {
    const keys = [...readUsers(ids)].map((id) => keyOf(id, source))
    const until = Math.min(this.#clock.now() + forMs, FOREVER.getTime())
    await requireMarks(this.#queue, 'suppressForMs').set(keys, new Date(until))
  }

  /** Returns whether a message is about a forgotten user. If so, counts the message, and tells observers to forget the user. */
  drops({ bytes, source }: Pick<DeliveryParts, 'bytes' | 'source'>): boolean {
    const { marks } = this.#queue
    if (marks === undefined || marks.size === 0) return false
    const isForgotten = (id: string): boolean =>
      marks.has(keyOf(id, undefined)) || (source !== undefined && marks.has(keyOf(id, source)))
    const ids = usersIn(bytes).filter(isForgotten)
    if (ids.length === 0) return false
    this.count += 1
    this.#tap.observers.publish('forgotten', { ids, source })
    return true
  }
}

/** @param source The source of the messages; undefined for all sources. */
function keyOf(id: string, source: string | undefined): string {
  return JSON.stringify(['forgotten', id, source])
}

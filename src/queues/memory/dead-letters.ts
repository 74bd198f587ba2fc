/** The dead letters of a queue in memory, the oldest first. */

import type { DeadLetter } from '../queue.ts'

/** The list. */
export interface DeadLetters {
  readonly size: number
  has(id: string): boolean
  add(letter: DeadLetter): void
  /** Skips ids that are not on the list. */
  find(ids: readonly string[] | 'all'): readonly DeadLetter[]
  /** Removes letters that were found. */
  remove(letters: readonly DeadLetter[]): void
  /** Forgets the oldest until at most so many bytes of bodies and retry states are left. */
  shrink(bytes: number): void
  /** Those after this id; from the oldest on when it is not on the list. */
  page(after: string | undefined, limit: number): readonly DeadLetter[]
}

/** Creates an empty list; past `most` the oldest is forgotten. */
export function createDeadLetters(most: number): DeadLetters {
  const letters = new Map<string, DeadLetter>()
  let bytes = 0 // Of bodies and retry states.

  function remove(letter: DeadLetter): void {
    letters.delete(letter.id)
    bytes -= bytesOf(letter)
  }

  function forgetOldest(): void {
    remove(letters.values().next().value as DeadLetter)
  }

  return {
    get size() {
      return letters.size
    },
    has: (id) => letters.has(id),
    add(letter) {
      if (letters.size === most) forgetOldest()
      letters.set(letter.id, letter)
      bytes += bytesOf(letter)
    },
    find(ids) {
      return ids === 'all' ? [...letters.values()] : ids.flatMap((id) => letters.get(id) ?? [])
    },
    remove(found) {
      for (const letter of found) remove(letter)
    },
    shrink(limit) {
      while (letters.size > 0 && bytes > limit) forgetOldest()
    },
    page(after, limit) {
      const page: DeadLetter[] = []
      let hasBegun = after === undefined || !letters.has(after)
      for (const letter of letters.values()) {
        if (page.length === limit) break
        if (hasBegun) page.push(letter)
        else hasBegun = letter.id === after
      }
      return page
    },
  }
}

/** The bytes of a job's body and retry state. */
export function bytesOf(job: { readonly body: Uint8Array; readonly retryState?: Uint8Array | undefined }): number {
  return job.body.byteLength + (job.retryState?.byteLength ?? 0)
}

/** A small Buffer is a view of a pool, all of which it keeps in memory; what stays for long gets bytes of its own. */
export function unpooled(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)
}

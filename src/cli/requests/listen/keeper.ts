/** Keeps requests in the store, many in one transaction. */

import { existsSync } from 'node:fs'
import { cannotUse } from '../../../sqlite/advice.ts'
import { note, UsageError } from '../../terminal.ts'
import type { KeptRequest } from '../kept.ts'
import { createStore } from '../open-store.ts'

/** Keeps requests. */
export interface Keeper {
  add(request: KeptRequest): void
  /** How many could not be kept. */
  readonly lost: number
  /** Keeps what waits, and frees the file. */
  close(): void
}

/** Requests wait so long for others, in milliseconds; or until they have so many bytes. */
const WAIT_MS = 25
const MOST_WAITING_BYTES = 1_000_000

/**
 * Creates a keeper.
 *
 * @param kept Gets the requests once they are in the store, or cannot be.
 * @throws UsageError for a file that cannot be used.
 */
export function createKeeper(path: string, kept: (requests: readonly KeptRequest[]) => void): Keeper {
  let store = createStore(path)
  let waiting: KeptRequest[] = []
  let [bytes, lost] = [0, 0]
  let timer: NodeJS.Timeout | undefined

  function flush(): void {
    clearTimeout(timer)
    timer = undefined
    const requests = waiting
    waiting = []
    bytes = 0
    if (requests.length === 0) return
    try {
      if (!existsSync(path)) reopen()
      store.add(requests)
    } catch (error) {
      const reason = error instanceof UsageError ? error.message : cannotUse('The store', path, error)
      if (lost === 0) note(`Requests are not kept. ${reason}`)
      lost += requests.length
    }
    kept(requests)
  }

  /** What is written to a file that was removed would be lost. */
  function reopen(): void {
    store.close()
    store = createStore(path)
  }

  return {
    add(request) {
      waiting.push(request)
      bytes += request.body.length
      if (bytes >= MOST_WAITING_BYTES) flush()
      else timer ??= setTimeout(flush, WAIT_MS)
    },
    get lost() {
      return lost
    },
    close() {
      flush()
      store.close()
    },
  }
}

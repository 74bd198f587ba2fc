/** What became of each message, and what was refused. */

import type { DeliveryReport, SkipReason } from '../../destination/observer.ts'
import { readMessage } from '../../destination/reports.ts'
import type { Message } from '../../message/message.ts'
import type { Job } from '../../queues/queue.ts'
import type { PlatformMessage, RefusedCall } from './api.ts'

/** The ledger. */
export interface Ledger {
  readonly messages: readonly PlatformMessage[]
  readonly refused: readonly RefusedCall[]
  /** Resolves at the next change. */
  readonly changed: Promise<void>
  queued(jobs: readonly Job[]): void
  skipped(message: Message, reason: SkipReason): void
  reported(report: DeliveryReport): void
  refuse(call: RefusedCall): void
}

/** Creates an empty ledger. */
export function createLedger(): Ledger {
  const messages = new Map<string, PlatformMessage>()
  const refused: RefusedCall[] = []
  let change: PromiseWithResolvers<void> | undefined

  function notify(): void {
    change?.resolve()
    change = undefined
  }

  return {
    get messages() {
      return [...messages.values()]
    },
    get refused() {
      return [...refused]
    },
    get changed() {
      change ??= Promise.withResolvers()
      return change.promise
    },
    queued(jobs) {
      for (const { id, body } of jobs) {
        if (!messages.has(id)) messages.set(id, { id, message: readMessage(body), status: 'waiting', attempts: [] })
      }
      notify()
    },
    skipped(message, reason) {
      const id = `skipped-${messages.size}`
      messages.set(id, { id, message, status: 'skipped', attempts: [], reason })
      notify()
    },
    reported({ id, status, latest, retryAt, reason }) {
      const before = messages.get(id)
      if (before === undefined) return
      messages.set(id, {
        id,
        message: before.message,
        status: status === 'retrying' ? 'waiting' : status,
        attempts: [...before.attempts, ...latest],
        ...(retryAt !== undefined && { retryAt }),
        ...(reason !== undefined && { reason }),
      })
      notify()
    },
    refuse(call) {
      refused.push(call)
      notify()
    },
  }
}

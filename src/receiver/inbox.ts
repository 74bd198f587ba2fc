/** The inbox of a receiver: stores messages durably, lists the dead, and ends in good order. */

import { HooklineError } from '../protocol/error.ts'
import type { Message } from '../protocol/message.ts'
import { requireText } from '../protocol/options.ts'
import { parse } from '../protocol/parse.ts'
import { jobIdFromKey, jobIdOf } from '../queues/job-id.ts'
import type { DeadPage, QueueCounts } from '../queues/queue.ts'
import { announceReceived, announceStored, startOf } from './announce.ts'
import type { DeadMessage, StoredMessage } from './api.ts'
import type { OpenDelivery } from './delivery.ts'
import { readEnvelope, writeEnvelope } from './envelope.ts'
import { isUnusable } from './faults.ts'
import type { Handlers } from './handlers.ts'
import { type DeadReason, type KeptError, readLastHistory } from './history.ts'
import type { InboxSettings } from './inbox-options.ts'
import type { ReceiverSettings } from './options.ts'
import { createWorker } from './worker.ts'

/** What a receiver does with its inbox. */
export interface Inbox {
  /**
   * Stores an authentic delivery; of others, only what is a message. Resolves when it is as safe as the queue makes it: to
   * the message, or to why it is none.
   *
   * @throws HooklineError (as a rejection) `inbox_unavailable`; of what is not authentic, why it is no message.
   */
  take(delivery: OpenDelivery): Promise<Message | HooklineError>
  /** @throws TypeError when it works already. */
  start(): void
  counts(): Promise<QueueCounts>
  dead(page?: DeadPage): Promise<readonly DeadMessage[]>
  redrive(ids: readonly string[] | 'all'): Promise<number>
  drop(ids: readonly string[] | 'all'): Promise<number>
  close(graceMs: number): Promise<readonly StoredMessage[]>
}

/** Makes it. */
export function createInbox(settings: InboxSettings, receiver: ReceiverSettings, handlers: Handlers): Inbox {
  const { queue, concurrency, key } = settings

  function idOf(delivery: OpenDelivery, message: Message | undefined): string {
    if (key === undefined || message === undefined) return jobIdOf(delivery.id)
    const chosen: unknown = key(message, delivery)
    requireText('inbox.key: what it returns', chosen)
    return jobIdFromKey(chosen)
  }

  async function store(delivery: OpenDelivery, message: Message | undefined): Promise<void> {
    const job = { id: idOf(delivery, message), body: writeEnvelope(delivery) }
    try {
      await queue.push([job])
    } catch (cause) {
      throw new HooklineError('inbox_unavailable', 'The message could not be stored. Send it again.', { cause })
    }
  }

  return {
    async take(delivery) {
      delivery.enter('inbox')
      const message = readMessage(delivery)
      if (message instanceof HooklineError) {
        await store(delivery, undefined)
        return message
      }
      announceReceived(message, delivery)
      const startedAt = startOf('stored', receiver.clock)
      await store(delivery, message)
      if (startedAt !== undefined && !delivery.isExpired) announceStored(message, delivery, startedAt, receiver.clock)
      return message
    },
    start: () => queue.work(createWorker(settings, receiver, handlers), { concurrency }),
    counts: () => queue.counts(),
    dead: async (page) => {
      const jobs = await queue.dead(page)
      return jobs.map(({ body, id, reason, state, diedAt }) => {
        const { error, attempts } = readLastHistory(state)
        const message = tryParse(body)
        return { ...readStored(id, body), message, ...readWhy(reason, error), attempts, diedAt: new Date(diedAt) }
      })
    },
    redrive: (ids) => queue.redrive(ids),
    drop: (ids) => queue.drop(ids),
    close: async (graceMs) => {
      const left = await queue.close({ graceMs })
      return left.map(({ id, body }) => readStored(id, body))
    },
  }
}

function readMessage(delivery: OpenDelivery): Message | HooklineError {
  try {
    return parse(delivery.bytes)
  } catch (error) {
    if (isUnusable(error) && delivery.verified) return error
    throw error
  }
}

/** A reason that is not the worker's is the queue's own, for a job that it could not read. */
function readWhy(reason: string, error: KeptError | undefined): Pick<DeadMessage, 'reason' | 'error'> {
  const known: readonly DeadReason[] = error === undefined ? [] : [error.code, 'crashed', 'unreadable']
  const ours = known.find((each) => each === reason)
  if (ours !== undefined) return { reason: ours, error: error as KeptError }
  return { reason: 'unreadable', error: { code: 'internal', message: reason, causes: [] } }
}

function readStored(id: string, body: Uint8Array): StoredMessage {
  try {
    const { bytes, headers, receivedAt } = readEnvelope(body)
    return { id, bytes, headers, receivedAt }
  } catch {
    return { id, bytes: body, headers: {}, receivedAt: undefined }
  }
}

function tryParse(body: Uint8Array): Message | undefined {
  try {
    return parse(readEnvelope(body).bytes)
  } catch {
    return undefined
  }
}

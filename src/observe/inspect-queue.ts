/** inspectQueue(): reads and changes a queue as its receiver or destination does, without needing either. */

import { aClock, anything, checkOptions, requireMethods } from '../kit/checks.ts'
import { type Clock, systemClock } from '../kit/clock.ts'
import { bodyOf } from '../receive/envelope.ts'
import {
  type HandledMessage,
  type HistoryFilter,
  listHistory,
  type Replay,
  type ReplayOptions,
  replay,
} from '../receive/history.ts'
import { readRetryState } from '../receive/inbox-state.ts'
import { type DeadLetterMessage, failedIn, readDeadLetter, reasonOf, withText } from '../receive/stored-message.ts'
import type { DestinationDeadLetter } from '../send/destination-types.ts'
import type { Attempt } from '../send/sender-types.ts'
import { isFailureReason, messageBytes, readDeadLetter as readOfDestination } from '../send/stored-submission.ts'
import { type EncryptionOptions, encryptQueue, type Reencrypted, readSeals, reseal } from '../store/encryption.ts'
import { checkHealth, type Health } from '../store/health.ts'
import { createLetters, type LetterCount, type LetterFilter, type LettersOwner, listLetters } from '../store/letters.ts'
import { FOREVER, PAUSED, requireMarks } from '../store/marks.ts'
import type { DeadLetter, DeadLetterPage, Queue, QueueLog } from '../store/queue-types.ts'

/** Options of {@link inspectQueue}. */
export interface InspectQueueOptions {
  /** The clock of the queue. Default: the clock of the machine. */
  readonly clock?: Clock
  /** The keys of an encrypted queue. Default: only the plain-text parts of encrypted messages are shown. */
  readonly encryption?: EncryptionOptions
}

/** A dead letter of an inbox. */
export interface InspectedInboxLetter extends DeadLetterMessage {
  /** Undefined for a job that neither an inbox nor a destination can read; the error of the dead letter says why. */
  readonly use: 'inbox' | undefined
}

/** A dead letter of a destination. The attempts have no URL, because the queue does not store URLs. */
export interface InspectedDestinationLetter extends Omit<DestinationDeadLetter, 'attempts'> {
  readonly use: 'destination'
  /** The bytes of the message as it was submitted. */
  readonly bytes: Uint8Array
  readonly attempts: readonly Omit<Attempt, 'url'>[]
}

export type InspectedLetter = InspectedInboxLetter | InspectedDestinationLetter

/** Selects the dead letters of a queue that match every given condition. */
export interface InspectedLetterFilter extends LetterFilter {
  /** Selects dead letters whose last attempt failed in the handler with this name. */
  readonly handler?: string
}

/** A queue as {@link inspectQueue} reads it. Without a log, `history` and `replay` throw a TypeError. */
export interface InspectedQueue {
  /** Reads the health of the queue. Never rejects, and takes at most a second. */
  health(): Promise<Health>
  /** Lists the dead letters, each once. Dead letters that are added during the listing may be included. */
  deadLetters(
    filter?: InspectedLetterFilter & Pick<DeadLetterPage, 'after' | 'newestFirst'>,
  ): AsyncIterable<InspectedLetter>
  /** Makes dead letters wait again, selected by their ids, by a filter, or all of them. Returns how many dead letters it redrove. */
  redrive(which: readonly string[] | 'all' | InspectedLetterFilter): Promise<number>
  /** Counts the dead letters that a redrive would make wait again, and changes nothing. */
  redrive(
    which: readonly string[] | 'all' | InspectedLetterFilter,
    options: { readonly dryRun: true },
  ): Promise<LetterCount>
  /** Deletes dead letters, selected by their ids, by a filter, or all of them. Returns how many dead letters it deleted. */
  drop(which: readonly string[] | 'all' | InspectedLetterFilter): Promise<number>
  /** Lists the messages that were handled, the oldest first. */
  history(filter?: HistoryFilter): AsyncIterable<HandledMessage>
  /**
   * Passes copies of handled messages to the handlers of the workers, like `replay` of a receiver. Unlike that method, it cannot know which
   * messages the handlers match: it passes on all of them, and a worker completes a message that none of the handlers in `handlers` match.
   */
  replay(options?: ReplayOptions): Promise<Replay>
  /**
   * Stops all processes of the queue from claiming messages, within 2 seconds after the call resolves and until {@link resume} is called.
   * Running handlers go on, messages are still stored, and `health()` reports `paused`.
   *
   * @throws TypeError (as a rejection) for an engine without marks.
   */
  pause(): Promise<void>
  resume(): Promise<void>
  /**
   * Encrypts dead letters and the history again with the first key of `encryption`, including messages in plain text, as far as the engine
   * can change them in place. Also counts the messages that are still in plain text or encrypted with other keys, including waiting
   * messages, which it never changes. Rejects with a TypeError if `encryption` is not given.
   */
  rewrite(): Promise<Reencrypted>
}

/**
 * Reads the queue of an inbox or a destination, and redrives, drops and replays its messages, without the receiver or the destination: for
 * scripts that run alongside the workers. Open the queue with `observe: true`.
 *
 * @throws TypeError for a value that is not a queue.
 * @example
 * const queue = sqliteQueue({ path: 'inbox.sqlite', name: 'inbox', observe: true })
 * for await (const { id, reason, message } of inspectQueue(queue).deadLetters()) console.log(id, reason, message?.type)
 */
export function inspectQueue(given: Queue, options: InspectQueueOptions = {}): InspectedQueue {
  checkOptions('inspectQueue', options, { clock: aClock, encryption: anything })
  requireMethods('queue', given, ['counts', 'deadLetters', 'redrive', 'drop'])
  const { clock = systemClock, encryption } = options
  const seals = readSeals('encryption', encryption)
  const queue = encryptQueue(given, seals, clock)
  const { redrive, drop } = createLetters<InspectedLetter>(queue, OWNER)

  function logFor(call: string): QueueLog {
    if (queue.log !== undefined) return queue.log
    throw new TypeError(`\`${call}\` needs an engine with a log. Use a queue of Hookline.`)
  }

  return {
    health: () => checkHealth(() => queue.counts(), false, clock),
    deadLetters: (filter = {}) => listLetters(queue, OWNER, filter),
    redrive,
    drop,
    async *history(filter = {}) {
      yield* listHistory(logFor('history'), filter)
    },
    async replay(replayOptions = {}) {
      return replay({ queue, log: logFor('replay'), clock }, replayOptions)
    },
    pause: async () => requireMarks(queue, 'pause').set([PAUSED], FOREVER),
    resume: async () => requireMarks(queue, 'resume').set([PAUSED], new Date(0)),
    async rewrite() {
      if (seals !== undefined) return reseal(given, seals)
      throw new TypeError(
        '`rewrite` needs encryption keys. Pass `encryption: { keys: [{ id, key }] }` to inspectQueue.',
      )
    },
  }
}

/**
 * Reads the dead letters of inboxes and destinations: only an inbox stores an error with each letter, and only a destination has a fixed
 * set of reasons.
 */
const OWNER: LettersOwner<InspectedLetter> = {
  readLetter(letter) {
    const isOfInbox = hasError(letter)
    if (isOfInbox || !isFailureReason(letter.reason)) {
      return Object.assign(readDeadLetter(letter), { use: isOfInbox ? ('inbox' as const) : undefined })
    }
    const { attempts, ...read } = readOfDestination(letter, [])
    const posted = attempts.map(({ url: _, ...attempt }) => attempt)
    return withText({ ...read, use: 'destination', bytes: messageBytes(letter.body), attempts: posted })
  },
  reasonOf: (letter) => (isFailureReason(letter.reason) ? letter.reason : reasonOf(letter)),
  bodyOf,
  filter: 'handler',
  isOf: failedIn,
}

function hasError({ retryState }: DeadLetter): boolean {
  return readRetryState(retryState).error !== undefined
}

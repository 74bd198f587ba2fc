/** inspectQueue(): reads and changes the queue of a receiver or a destination, without the receiver or the destination. */

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

/** The options of {@link inspectQueue}. */
export interface InspectQueueOptions {
  /** The clock of the queue. Default: the clock of the machine. */
  readonly clock?: Clock
  /** The keys of an encrypted queue. Without them, only the parts of messages that are stored in plain text can be read. */
  readonly encryption?: EncryptionOptions
}

/** A dead letter of an inbox, or one that neither an inbox nor a destination can read. */
export interface InspectedInboxLetter extends DeadLetterMessage {
  /** Undefined for a dead letter that neither an inbox nor a destination can read; its `error` says why. */
  readonly use: 'inbox' | undefined
}

/** A dead letter of a destination. Its attempts have no URL, because the queue does not store URLs. */
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

/** A queue that was opened by {@link inspectQueue}. If its engine has no log, `history` and `replay` reject with a TypeError. */
export interface InspectedQueue {
  /** Reads the health of the queue. Never rejects, and takes at most a second. */
  health(): Promise<Health>
  /** Lists the dead letters, each once. Dead letters that are added during the listing may be included. */
  deadLetters(
    filter?: InspectedLetterFilter & Pick<DeadLetterPage, 'after' | 'newestFirst'>,
  ): AsyncIterable<InspectedLetter>
  /**
   * Makes dead letters wait to be handled or sent again: those with the given ids, all, or those that match a filter. Returns the number of
   * dead letters that it redrove.
   */
  redrive(which: readonly string[] | 'all' | InspectedLetterFilter): Promise<number>
  /** Counts the dead letters that a call without `dryRun` would redrive, without changing anything. */
  redrive(
    which: readonly string[] | 'all' | InspectedLetterFilter,
    options: { readonly dryRun: true },
  ): Promise<LetterCount>
  /**
   * Deletes dead letters: those with the given ids, all, or those that match a filter. Returns the number of dead letters that it deleted.
   */
  drop(which: readonly string[] | 'all' | InspectedLetterFilter): Promise<number>
  /** Lists the messages that were handled, oldest first. */
  history(filter?: HistoryFilter): AsyncIterable<HandledMessage>
  /**
   * Pushes copies of handled messages to the queue, like `replay` of a receiver. Unlike a receiver, this method does
   * not know the handlers. It also pushes copies that match none of the handlers in `handlers`. The process that claims
   * such a copy completes it without a handler.
   */
  replay(options?: ReplayOptions): Promise<Replay>
  /**
   * Makes all processes of the queue stop claiming messages until {@link resume} is called. They stop within 2 seconds
   * after the promise resolves. Running handlers continue, messages are still stored, and `paused` of `health()` is
   * true.
   *
   * @throws TypeError (as a rejection) for an engine without marks.
   */
  pause(): Promise<void>
  resume(): Promise<void>
  /**
   * Encrypts the dead letters and the history with the first key of `encryption`, including those in plain text. Skips
   * waiting messages, and messages that the engine cannot change in place. Counts the messages, including waiting ones,
   * that are still in plain text or encrypted with other keys.
   *
   * @throws TypeError (as a rejection) without `encryption`.
   */
  rewrite(): Promise<Reencrypted>
}

/**
 * Opens the queue of an inbox or a destination for a script that runs beside the workers, without a receiver or a destination. Reads the
 * queue, and redrives, drops and replays its messages. Create the queue with `observe: true`.
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
    throw new TypeError(
      `\`${call}\` needs an engine with a log. The engine of this queue has none. Pass one of Hookline's queues, such as sqliteQueue.`,
    )
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
 * Reads the dead letters of inboxes and destinations. A dead letter with a stored error belongs to an inbox. Any other dead letter belongs
 * to a destination if its reason is one that only destinations have.
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

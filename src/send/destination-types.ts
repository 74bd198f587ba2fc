/** The public types of a destination. */

import type { Message } from '../protocol/message.ts'
import type { Health } from '../store/health.ts'
import type { LetterCount, LetterFilter } from '../store/letters.ts'
import type { DeadLetterFilter, DeadLetterPage, Forgotten, PushOptions } from '../store/queue-types.ts'
import type { UrlHealth } from './circuit.ts'
import type { DestinationObserver, FailureReason, SkipReason } from './destination-events.ts'
import type { Attempt, CallMethods } from './sender-types.ts'
import type { Webhook } from './webhooks.ts'

/** Whether a destination queued a message. */
export type Queued =
  | { readonly queued: true /** Identifies the message in reports and dead letters. */; readonly id: string }
  | { readonly queued: false; readonly reason: Exclude<SkipReason, 'filtered'> }

/** A message to queue. */
export interface Submission {
  readonly message: Message
  /** Identifies the message: a message that is submitted again under the same key is queued only once. Default: no key. */
  readonly key?: string
  /** Where the message comes from; passed to `filter` and `transform`, and stored with the message but not sent. Default: none. */
  readonly source?: string
}

/** A message that failed and is not retried until it is redriven. */
export interface DestinationDeadLetter {
  readonly id: string
  /** The message as it was submitted; undefined when the reason is `unreadable`. */
  readonly message: Message | undefined
  readonly reason: FailureReason
  readonly attempts: readonly Attempt[]
  readonly failedAt: Date
  /**
   * With `transform_failed`, the first 500 characters of what `filter` or `transform` threw, as text. With `unreadable`, why the queue
   * cannot read the message, if the queue gives a reason.
   */
  readonly error?: string
  /** The first 2 000 characters of the stack of what `filter` or `transform` threw, if that has a stack. */
  readonly stack?: string
}

/** Selects the dead letters of a destination that match every given condition. */
export interface DestinationLetterFilter extends LetterFilter<FailureReason> {
  /** Selects the messages that were posted to this URL without success. */
  readonly url?: string
}

/** Options of {@link Destination.syncAudience} and {@link Destination.syncTrait}. */
export interface SyncOptions<Previous> {
  /** The result of the previous sync. Default: nothing, for the first sync. */
  readonly previous?: Previous
}

/** Options of {@link Destination.close}. */
export interface DestinationCloseOptions {
  /** How long messages that are due may still be posted, in milliseconds. Default 5000. */
  readonly graceMs?: number
}

/** The health of a destination and its queue. */
export interface DestinationHealth extends Health {
  /** The health of each URL, in the order of the webhooks. */
  readonly urls: readonly UrlHealth[]
  /** The number of messages that were not queued or not sent since the destination was created, keyed by reason. */
  readonly skipped: Readonly<Record<SkipReason, number>>
  /** How often `filter` or `transform` failed in this process. Each failure made a message a dead letter. */
  readonly transformFailed: number
}

/** The settings that {@link Destination.update} changes. */
export interface DestinationChanges {
  /** The new URLs, one to five. */
  readonly webhooks?: readonly Webhook[]
  /**
   * The new shared secret; with null, requests are sent unsigned. The type admits undefined so that `process.env.X` compiles; a secret that
   * is undefined or empty throws a TypeError.
   */
  readonly sharedSecret?: string | null | undefined
  /** Whether messages are queued and sent from now on. */
  readonly enabled?: boolean
}

/** Queues messages, immediately or in a transaction of your own, and delivers each at least once or reports that it failed. */
export interface Destination extends CallMethods<Queued, [options?: PushOptions]> {
  /** Whether messages are queued and sent. */
  readonly enabled: boolean
  /**
   * Queues a whole message. Adds `version`, `timestamp`, `messageId` and `context` where they are missing.
   *
   * @throws TypeError (as a rejection) for an invalid field or option, which the error names, and for a `db` of a queue without transactions.
   * @throws HooklineError (as a rejection) `queue_full`, `queue_unavailable`, or `shutting_down` after {@link close}.
   */
  send(message: Message, options?: PushOptions): Promise<Queued>
  /** Queues messages, all of them or none. Rejects with the same errors as {@link send}. */
  submit(submissions: readonly Submission[], options?: PushOptions): Promise<readonly Queued[]>
  /**
   * Queues an `identify` for each user who entered an audience since the previous sync, with the trait true, and for each user who left it,
   * with the trait false ("Outbound event delivery", Audience and computed-trait delivery). The first sync queues an `identify` for every
   * member. Waits while the queue is full. While the destination is disabled and `whenDisabled` is `drop`, nothing is queued; the next sync
   * queues the missed changes.
   *
   * @param name The name of the audience. The trait has this name in snake_case.
   * @param members The user ids of all current members.
   * @returns The members to pass as `previous` next time.
   * @throws TypeError (as a rejection) for a name without letters or digits, or a user id that is not a non-empty string.
   */
  syncAudience(
    name: string,
    members: Iterable<string>,
    options?: SyncOptions<Iterable<string>>,
  ): Promise<ReadonlySet<string>>
  /**
   * Queues an `identify` for each user whose value of a computed trait changed since the previous sync, with null for a user who
   * no longer has a value. Otherwise it works like {@link syncAudience}.
   *
   * @param name The name of the trait. It is sent in snake_case.
   * @param values The value for each user id. Values are compared as JSON.
   * @returns The values to pass as `previous` next time.
   */
  syncTrait<Value>(
    name: string,
    values: Iterable<readonly [userId: string, value: Value]>,
    options?: SyncOptions<Iterable<readonly [userId: string, value: Value]>>,
  ): Promise<ReadonlyMap<string, Value>>
  /** Enables the destination. It begins to send the held messages within 10 seconds. */
  enable(): void
  /**
   * Disables the destination. New messages are not queued unless `whenDisabled` is `hold`. Queued messages are held for up to four hours,
   * after which they fail with `switched_off`. The queue does not store this change: after a restart, the option `enabled` decides, so
   * store its value with your other settings.
   */
  disable(): void
  /**
   * Changes the URLs, the secret or `enabled` while the destination runs; settings that are left out stay as they are. Queued messages use
   * the new settings from their next attempt on. An attempt under way continues with its original settings, and its result counts.
   *
   * A message that waits for a retry keeps its retry schedule and its limit of four hours. Each retry posts the message to the URLs that
   * are set at that time. A new URL gets it, and a removed URL does not. A URL that gave a final response does not get it again. When only
   * URLs that gave a final response are left, the message fails with `refused`.
   *
   * @throws TypeError that names the invalid option, as at creation. Nothing is changed in that case.
   * @throws HooklineError `shutting_down` after {@link close}.
   * @example
   * destination.update({ webhooks: [{ url: 'https://new.example/webhooks' }], sharedSecret: 'new secret' })
   */
  update(changes: DestinationChanges): void
  /**
   * Adds an observer, whose methods are called for the events of this destination only; the diagnostics channels cover all destinations of
   * the process. A destination can have several observers. Returns a function that removes this observer.
   *
   * @throws TypeError that names the method, if it is not a function or its name is unknown.
   */
  observe(observer: DestinationObserver): () => void
  /** Reads the health of the destination and its queue. Never rejects, and takes at most a second. */
  health(): Promise<DestinationHealth>
  /** Lists the messages that failed, oldest first. */
  deadLetters(page?: DeadLetterPage & DestinationLetterFilter): Promise<readonly DestinationDeadLetter[]>
  /**
   * Queues dead letters again: those with the given ids, all of them, or those that match a filter. Each gets a new period of four hours.
   * Returns the number of queued messages.
   */
  redrive(which: readonly string[] | 'all' | DestinationLetterFilter): Promise<number>
  /** Counts the dead letters that a redrive would queue again, and changes nothing. */
  redrive(
    which: readonly string[] | 'all' | DestinationLetterFilter,
    options: { readonly dryRun: true },
  ): Promise<LetterCount>
  /**
   * Deletes dead letters: those with the given ids, all of them, or those that match a filter. Returns the number of deleted dead letters.
   */
  drop(which: readonly string[] | 'all' | (DeadLetterFilter<FailureReason> & DestinationLetterFilter)): Promise<number>
  /**
   * Deletes what is stored about a user: the waiting messages and dead letters that were submitted with one of these ids. The ids of a
   * message are its `userId`, its `anonymousId` and, for an alias, its previous id. Keeps `delete` messages, which carry the deletion
   * request. Reads every stored message once.
   *
   * A message that is being posted at that moment is counted as `active`. If no URL accepts the message, it waits for a retry, so call
   * `forget` again until `active` is 0.
   */
  forget(ids: string | readonly string[]): Promise<Forgotten>
  /**
   * Stops queueing messages, and gives messages that are due a grace period in which to be delivered. Returns the undelivered messages that
   * are lost when this process ends; a durable queue loses none.
   */
  close(options?: DestinationCloseOptions): Promise<readonly Message[]>
}

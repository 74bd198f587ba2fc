/** What createSender() and createDestination() give: types only. */

import type { Calls } from '../protocol/calls.ts'
import type { Message } from '../protocol/message.ts'
import type { DeadPage } from '../queues/queue.ts'

/** Why a POST got no answer that counts. */
export type AttemptError =
  /** No complete answer within 5 seconds, connecting included. */
  | 'timeout'
  /** The certificate is not self-signed, and yet not good: expired, for another name, not verifiable. */
  | 'tls'
  /** A self-signed certificate: no byte of the request was sent. */
  | 'self_signed'
  /** The name of the host could not be resolved. */
  | 'dns'
  /** Nobody could be reached at the address. */
  | 'refused'
  /** The connection ended before the answer did. */
  | 'reset'
  /** The answer was not HTTP. */
  | 'http'
  /** A private address, while `allowPrivateAddresses` is false: no byte was sent. */
  | 'private_address'
  /** The sender was closed before there was an answer. */
  | 'closed'

/** What happened at one URL. */
export interface Attempt {
  /** The webhook URL; its query reads `?…`, because it may hold a token. */
  readonly url: string
  /** When it began, in milliseconds since the epoch. */
  readonly at: number
  /** From connecting to the last byte, in milliseconds. */
  readonly durationMs: number
  /** Whether the endpoint took the message: any 2xx. */
  readonly ok: boolean
  /** The status of the answer, when there was one in time. */
  readonly status?: number
  /** Why there was none. */
  readonly error?: AttemptError
  /** The same for a person: `ECONNREFUSED`, `certificate has expired`. */
  readonly reason?: string
  /** The beginning of the answer's body, at most 256 bytes of it. */
  readonly body: string
  /** What `Retry-After` of the answer asked for, in milliseconds. */
  readonly retryAfterMs?: number
}

/** One message, posted to every URL at once. */
export interface Round {
  /** Whether any URL took it ("Outbound event delivery", Errors: that is enough). */
  readonly ok: boolean
  /** The message that was sent. */
  readonly message: Message
  /** What happened at each URL, in the order of the webhooks. */
  readonly attempts: readonly Attempt[]
}

/** What became of a message that a destination was given. */
export type Queued =
  | { readonly queued: true /** Names it in reports and in the list of the dead. */; readonly id: string }
  | {
      readonly queued: false
      /** The destination is off, or the integrations of the message leave `Webhooks` out. */
      readonly reason: 'switched_off' | 'not_selected'
    }

/** A message on its way into a destination's queue. */
export interface Submission {
  readonly message: Message
  /** What identifies it to whoever submits it: submitted again under the same key, it is queued once. Default: nothing. */
  readonly key?: string
}

/** Why a message failed for good. */
export type FailureReason =
  /** No URL is left that could still take it: each gave a final answer. */
  | 'refused'
  /** Four hours have passed since the first attempt. */
  | 'window_over'
  /** The destination was off when the four hours ended. */
  | 'switched_off'
  /** The queue lost what it kept, or somebody changed it there: nothing can be sent. */
  | 'unreadable'

/** What happened to a message so far. */
export interface DeliveryReport {
  readonly status: 'delivered' | 'retrying' | 'failed'
  readonly id: string
  /** Read from the bytes when it is asked for: a report that is spread, or written as JSON, is without it. */
  readonly message: Message
  /** What happened at each URL in the round that this is about; none when there was no time or no leave to try again. */
  readonly latest: readonly Attempt[]
  /** Every attempt at every URL since the message was queued, in order; those before the latest round without what was said. */
  readonly attempts: readonly Attempt[]
  /** When a message that is retrying goes again, in milliseconds since the epoch. */
  readonly retryAt?: number
  /** Why it failed. */
  readonly reason?: FailureReason
}

/** A message that was given up. */
export interface FailedDelivery {
  readonly id: string
  /** Undefined when it is `unreadable`. */
  readonly message: Message | undefined
  readonly reason: FailureReason
  readonly attempts: readonly Attempt[]
  /** In milliseconds since the epoch. */
  readonly failedAt: number
}

/** One method for each of the seven message types. */
export type CallMethods<Result> = {
  readonly [Type in keyof Calls]: (call: Calls[Type]) => Promise<Result>
}

/** How to sync. */
export interface SyncOptions<Previous> {
  /** What the sync before returned. Left out, this is the first one. */
  readonly previous?: Previous
}

/** A customer's destination: takes messages, and delivers each at least once or reports that it could not. */
export interface Destination extends CallMethods<Queued> {
  /** Whether messages are taken and forwarded. */
  readonly enabled: boolean
  /**
   * Queues a whole message. What it lacks is filled in: `version`, `timestamp`, `messageId`, `context`.
   *
   * @throws TypeError that names the field; HooklineError `queue_full`, `queue_unavailable` or `shutting_down`. All as
   *   rejections.
   */
  send(message: Message): Promise<Queued>
  /** Queues messages, all of them or none; throws as {@link send} does. */
  submit(submissions: readonly Submission[]): Promise<readonly Queued[]>
  /**
   * Tells who is in an audience: an `identify` for each user who came in (true) or left (false) since the sync before,
   * for everyone in it the first time ("Outbound event delivery", Audience and computed-trait delivery). Waits while
   * the queue is full. While the destination is off nothing is sent, and the next sync makes up for it.
   *
   * @param name Name of the audience. The trait is its snake_case form.
   * @param members The `userId`s in it now.
   * @returns What to give as `previous` the next time.
   * @throws TypeError (as a rejection) for a name without letters, or a userId that is no text.
   */
  syncAudience(
    name: string,
    members: Iterable<string>,
    options?: SyncOptions<Iterable<string>>,
  ): Promise<ReadonlySet<string>>
  /**
   * Tells what a computed trait is: an `identify` for each user whose value is not what it was at the sync before. A
   * user who has none any more gets null.
   *
   * @param name Name of the trait. The key is its snake_case form.
   * @param values The value of each `userId`, as JSON.
   * @returns What to give as `previous` the next time.
   */
  syncTrait<Value>(
    name: string,
    values: Iterable<readonly [userId: string, value: Value]>,
    options?: SyncOptions<Iterable<readonly [userId: string, value: Value]>>,
  ): Promise<ReadonlyMap<string, Value>>
  /** Switches it on: messages are taken, and those that were held go again within 10 seconds. */
  enable(): void
  /**
   * Switches it off: messages are not taken, and those in the queue are held. Their four hours go on; one whose time
   * ends before it is switched on again has failed, `switched_off`.
   */
  disable(): void
  /** The messages that failed, the longest failed first. */
  dead(page?: DeadPage): Promise<readonly FailedDelivery[]>
  /** Sends failed messages again, with four new hours. Returns how many. */
  redrive(ids: readonly string[] | 'all'): Promise<number>
  /** Forgets failed messages. Returns how many. */
  drop(ids: readonly string[] | 'all'): Promise<number>
  /**
   * Takes no more messages, and gives those that are due the grace to be delivered. Returns the messages that were not and
   * that the queue does not keep past the end of this process: none, for a durable queue.
   */
  close(options?: DestinationCloseOptions): Promise<readonly Message[]>
}

/** How to close. */
export interface DestinationCloseOptions {
  /** How long deliveries may still take, in milliseconds. Default 5000. */
  readonly graceMs?: number
}

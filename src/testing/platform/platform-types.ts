/** The public types of a platform for tests. */

import type { CollectorOptions } from '../../collect/collector-options.ts'
import type { Collector } from '../../collect/collector-types.ts'
import type { Clock } from '../../kit/clock.ts'
import type { Message, MessageType } from '../../protocol/message.ts'
import type { FailureReason, SkipReason } from '../../send/destination-events.ts'
import type { DestinationOptions } from '../../send/destination-options.ts'
import type { Destination } from '../../send/destination-types.ts'
import type { Attempt } from '../../send/sender-types.ts'
import type { Webhook } from '../../send/webhooks.ts'

/** Options of `startPlatform`. */
export interface PlatformOptions {
  /** Where messages are delivered: the URL of your endpoint, or up to five URLs. A `Webhook` may have static headers. */
  readonly to: string | URL | Webhook | readonly (string | URL | Webhook)[]
  /**
   * The shared secret, which signs every request. Omit it to send unsigned requests. The type admits undefined so that
   * `process.env.X` compiles; a secret that is undefined or empty causes a TypeError.
   */
  readonly secret?: string | undefined
  /** The write key of the clients. Default: `test-write-key`. */
  readonly writeKey?: string
  /** The port of the collector. Default 0: any free port. */
  readonly port?: number
  /**
   * How long `delivered` waits for a call to arrive and for an endpoint to respond, in milliseconds of the machine's clock. Default 4000:
   * less than the five seconds after which most test runners end a test, so that the error of `delivered` is shown.
   */
  readonly timeoutMs?: number
  /** Further options of the destination. `random` is 0.5 by default, so that retries have the same times in each run. */
  readonly destination?: Omit<DestinationOptions, 'webhooks' | 'sharedSecret' | 'queue' | 'clock'>
  /** Further options of the collector. */
  readonly collector?: Omit<CollectorOptions, 'sources' | 'clock'>
}

/**
 * A part of a message: the fields that must be equal, including those of nested objects. Asymmetric matchers such as `expect.any(Number)`
 * are also allowed.
 */
export type MessagePattern<Type extends MessageType = MessageType> = { readonly type?: Type } & {
  readonly [field: string]: unknown
}

/** A message and what has happened to it. */
export interface PlatformMessage<Type extends MessageType = MessageType> {
  /** Identifies the message in reports and dead letters of the destination. */
  readonly id: string
  readonly message: Extract<Message, { readonly type: Type }>
  /**
   * The state of the message:
   *
   * - `waiting`: it is being posted, or waits until the clock moves.
   * - `delivered`: a URL accepted it.
   * - `failed`: it is a dead letter, for `reason`.
   * - `skipped`: the destination did not queue it, for `reason`.
   */
  readonly status: 'waiting' | 'delivered' | 'failed' | 'skipped'
  /** Every attempt, in order, with the beginning of the response body. */
  readonly attempts: readonly Attempt[]
  /** When the message will be retried, on the platform's clock; set after a failed attempt that is retried. */
  readonly retryAt?: Date
  readonly reason?: FailureReason | SkipReason
}

/** A request that the collector refused, or one refused call of a request. */
export interface RefusedCall {
  readonly path: string
  /** The status of the answer. It is 200 when other calls of the same batch were accepted. */
  readonly status: number
  readonly code: string
  /** Says what is wrong and what to do. */
  readonly detail: string
  /** The index of the call in its batch; absent when the request was refused as a whole. */
  readonly index?: number
}

/** Options of {@link Platform.delivered}. */
export interface DeliveredOptions {
  /** Replaces the option `timeoutMs` of the platform for this call. */
  readonly timeoutMs?: number
}

/** A collector, a destination and a clock, for a test of a client, of an endpoint, or of both. */
export interface Platform extends AsyncDisposable {
  /** The URL to which clients post batches: `http://127.0.0.1:<port>/v1/batch`. */
  readonly endpoint: string
  /** The URL of the collector without a path, for clients that add a path of their own. */
  readonly host: string
  readonly writeKey: string
  /** Every message that was collected, in order. */
  readonly messages: readonly PlatformMessage[]
  /** Every request and call that the collector refused, in order. */
  readonly refused: readonly RefusedCall[]
  /**
   * The platform's clock, which starts at the current time and stands still until {@link advance}. Pass it to code that must have the same
   * time.
   */
  readonly clock: Clock
  /** The collector. Use it for operations for which the platform has no method, such as `collector.delete('user-1')`. */
  readonly collector: Collector
  /**
   * The destination. Use it for operations for which the platform has no method, such as `destination.disable()`, `redrive` and
   * `syncAudience`.
   */
  readonly destination: Destination
  /**
   * Resolves to the first message that matches and was delivered, before this call or after it. Waits up to `timeoutMs` for a call that has
   * not arrived yet, and for calls and attempts under way. Does not move the clock.
   *
   * @param pattern Fields that must be equal. Default: any message.
   * @throws Error (as a rejection) that lists what arrived, and why it was not delivered. It is thrown at once when matching messages
   *   failed or wait for the clock.
   * @example
   * const { message, attempts } = await platform.delivered({ type: 'track', event: 'Order Completed' })
   */
  delivered<Type extends MessageType = MessageType>(
    pattern?: MessagePattern<Type>,
    options?: DeliveredOptions,
  ): Promise<PlatformMessage<Type>>
  /**
   * Moves the clock forward, and makes the retries that become due. Each attempt is a real request: before moving on, the clock waits for
   * its response, but for at most `timeoutMs`. After that, the clock moves on, and the attempt may time out in the destination.
   */
  advance(ms: number): Promise<void>
  /** Ends attempts under way and stops listening. */
  close(): Promise<void>
}

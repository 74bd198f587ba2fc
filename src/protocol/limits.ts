/** The limits, times and names that the specification sets, and those that Hookline adds. */

/** How long an endpoint may take to answer a request, in milliseconds ("Outbound event delivery", Limits). */
export const RESPONSE_TIME_MS = 5_000

/**
 * The default deadline of a receiver, in milliseconds: the sender's 5 seconds less half a second for the network. The sender then gets a
 * 503 before its own timeout.
 */
export const DEADLINE_MS = RESPONSE_TIME_MS - 500

/**
 * The default limit of a request body, in bytes. The specification states no limit for deliveries. A call has at most 32 KB and a batch at
 * most 500 KB ("Go client library", Limits), so 512 KiB is enough for either.
 */
export const BODY_LIMIT = 512 * 1024

/** The default maximum number of elements in a batch that a receiver accepts: as many as Customer.io sends. */
export const ELEMENTS_LIMIT = 1_000

/** The length of an `X-Signature`, in characters: SHA-1 has 20 bytes, and each is written as two hexadecimal digits. */
export const SIGNATURE_LENGTH = 40

/** The `Retry-After` in the answer of an endpoint that is shutting down or has no room, in seconds. */
export const RETRY_AFTER_S = 5

/** How long a secret from an async provider is used before the provider is called again, in milliseconds. */
export const SECRET_MAX_AGE_MS = 5 * 60_000

/**
 * The minimum time between two calls of an async provider because of failed signatures, in milliseconds. The first
 * failed signature causes a call immediately, so that a rotated secret is noticed. Because of this time, many forged
 * requests cause few calls.
 */
export const SECRET_COOLDOWN_MS = 10_000

/** The minimum time between two calls of an async provider that fails while no secret is known, in milliseconds. */
export const SECRET_RETRY_MS = 1_000

/** The maximum number of characters in the name of a source. */
export const SOURCE_NAME_LIMIT = 200

/**
 * How much of a body over the limit is read and dropped before the body is refused, in bytes. A sender that is cut off while it writes
 * would see a connection reset instead of the answer.
 */
export const DISCARD_LIMIT = 1024 * 1024

/** The maximum time to read and drop a body over the limit, in milliseconds. Then the endpoint answers, whether or not more arrives. */
export const DISCARD_MS = 500

/** The maximum number of webhook URLs of a destination ("Outbound event delivery", Limits). */
export const WEBHOOKS_LIMIT = 5

/** How long a message is retried, in milliseconds: four hours ("Outbound event delivery", Limits). */
export const RETRY_WINDOW_MS = 4 * 60 * 60_000

/** The name of the destination in an integrations object ("Outbound event delivery", What the service does 3). */
export const INTEGRATION_NAME = 'Webhooks'

/** The default `User-Agent` of a sender, and the `User-Agent` of a client ("Outbound event delivery", Outbound delivery). */
export const USER_AGENT = 'Hookline/1.0'

/** The maximum size of one call, in bytes: 32 KB ("Go client library", Limits). */
export const CALL_LIMIT = 32 * 1024

/** The maximum size of one batch request that a collector accepts, in bytes: 500 KB ("Go client library", Limits). */
export const BATCH_LIMIT = 500 * 1024

/** The maximum size of one batch request that a client sends, in bytes: within 500 KB, whether a KB has 1000 bytes or 1024. */
export const BATCH_SENT_LIMIT = 500_000

/** The number of calls that a client records before it flushes them ("Go client library", Limits). */
export const FLUSH_AT = 20

/** The time between two flushes of a client, in milliseconds ("Go client library", Limits). */
export const FLUSH_AFTER_MS = 5_000

/** The maximum number of bytes of an answer that a sender reads. Later bytes are ignored. */
export const RESPONSE_LIMIT = 64 * 1024

/** The maximum number of bytes of an answer that a client reads. The answer may list the refused calls of a batch. */
export const BATCH_RESPONSE_LIMIT = 1024 * 1024

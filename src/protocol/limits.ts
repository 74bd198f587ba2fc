/** Every number of the protocol, named, with its source. */

/**
 * How long an endpoint may take to answer, in milliseconds.
 * Outbound event delivery, "Limits": response time allowed per request.
 */
export const RESPONSE_TIME_MS = 5_000

/**
 * Default deadline of a receiver, in milliseconds: the sender's 5 seconds less half
 * a second for the network, so that the sender reads our 503 instead of timing out.
 */
export const DEADLINE_MS = RESPONSE_TIME_MS - 500

/**
 * Default limit of a request body, in bytes. The documents state none for deliveries; one call is
 * at most 32 KB and a batch 500 KB ("Go client library", Limits), so 512 KiB leaves room above both.
 */
export const BODY_LIMIT = 512 * 1024

/** Length of an `X-Signature`: SHA-1 is 20 bytes, two hexadecimal digits each. */
export const SIGNATURE_LENGTH = 40

/** What `Retry-After` asks of a sender while we shut down or have no room, in seconds. */
export const RETRY_AFTER_S = 5

/** How long a secret from an async provider is used before it is asked again, in milliseconds. */
export const SECRET_MAX_AGE_MS = 5 * 60_000

/**
 * The least time between two questions to an async provider that a failed signature causes, in
 * milliseconds: a rotation is seen at once, and a flood of forgeries is not a flood of questions.
 */
export const SECRET_COOLDOWN_MS = 10_000

/** The least time between two questions to an async provider that fails while no secret is known, in milliseconds. */
export const SECRET_RETRY_MS = 1_000

/**
 * How much of a body over the limit is read and dropped before it is refused, in bytes: a sender that is cut off in
 * the middle of writing would see a reset, and not the answer.
 */
export const DISCARD_LIMIT = 1024 * 1024

/** How long that may take, in milliseconds: a sender that is not writing need not wait for its answer. */
export const DISCARD_MS = 500

/** Most webhook URLs of a destination. Outbound event delivery, "Limits". */
export const WEBHOOKS_LIMIT = 5

/** How long a message is retried, in milliseconds: 4 hours. Outbound event delivery, "Limits": retry window. */
export const RETRY_WINDOW_MS = 4 * 60 * 60_000

/** The name of the destination in an integrations object. Outbound event delivery, "What the service does" 3. */
export const INTEGRATION_NAME = 'Webhooks'

/** Most bytes of one call: 32 KB. Go client library, "Limits". */
export const CALL_LIMIT = 32 * 1024

/** Most bytes of one batch request: 500 KB. Go client library, "Limits". */
export const BATCH_LIMIT = 500 * 1024

/** Messages that a client queues before it flushes them. Go client library, "Limits". */
export const FLUSH_AT = 20

/** How long after the last flush a client flushes again, in milliseconds. Go client library, "Limits". */
export const FLUSH_AFTER_MS = 5_000

/** Most bytes of an answer that a sender reads; what comes after decides nothing. */
export const RESPONSE_LIMIT = 64 * 1024

/** Most bytes of an answer that a client reads: it may list the calls of a batch that were refused. */
export const BATCH_RESPONSE_LIMIT = 1024 * 1024

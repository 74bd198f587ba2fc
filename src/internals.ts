/**
 * The names that only the command and the inspector use. The package does not export this file. The comment above each
 * group says why its names are not public.
 */

// The inspector shows when a destination makes its next attempt, and reads all dead letters of a receiver, however many pages they have.
export { isRetryable, nextDelay } from './send/schedule.ts'
export { RETRY_WINDOW_MS } from './protocol/limits.ts'
export { walkLetters } from './store/walk.ts'

// The inspector shows what a receiver and a collector do not expose: schemas, the call type of each path, and which
// secret matches a signature.
export { ROUTES } from './collect/routes.ts'
export { schemasOf, secretsOf } from './receive/inspected.ts'

// The tools hide the same data as the log of the library, and describe errors in the same words.
export { explainError } from './receive/failure.ts'
export { readIssue } from './receive/schema-issues.ts'
export { shownHeader, shownUrl } from './kit/shown.ts'
export { createLog } from './kit/log.ts'
export { escaped } from './kit/warning.ts'

// The tools read the users and the time of a message, and the id of the key that encrypted it, even if the message is not valid.
export { readUsers, usersOf } from './protocol/identity.ts'
export { sealedWith } from './store/encryption.ts'
export { toTimestamp } from './protocol/timestamp.ts'

// `check` and `send` imitate known senders, and create requests that a receiver must refuse. Users have `explainSignature` and
// `signedRequest` instead.
export { layOut } from './protocol/explain/json-text.ts'
export { MISTAKES } from './protocol/explain/mistakes.ts'
export { TAMPERINGS, tamper } from './send/tamper.ts'
export { KNOWN_SENDERS } from './testing/known-senders.ts'

// The command posts requests that no sender posts, and reads requests that no receiver accepts. Users have a sender and adapters instead.
export { createPoster, type Exchange } from './kit/poster.ts'
export { readStream } from './host/read-stream.ts'
export { RESERVED_HEADERS } from './send/webhooks.ts'
export { listen } from './testing/server.ts'

// The inspector checks its options, and the command suggests names, in the same way as the library.
export { invalidOption, kindOf, nearest, requireInteger, requireMethods, requireOptions } from './kit/checks.ts'

// The inspector waits a limited time for an app, and does not keep the process of the app alive.
export { inBackground, systemClock } from './kit/clock.ts'
export { TIMED_OUT, withTimeout } from './kit/timeout.ts'

/**
 * What the tests of an endpoint need: messages to send, requests signed as the destination signs them, and a clock.
 *
 * @module hookline/testing
 */

export { fixtures } from './fixtures.ts'
export { type ManualClock, manualClock } from './manual-clock.ts'
export { type SignedRequest, signedRequest } from './signed-request.ts'

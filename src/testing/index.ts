/**
 * What tests of either end need: messages, requests signed as the destination signs them, an endpoint that answers as
 * it is told, a network that records, and a clock.
 *
 * @module hookline/testing
 */

export { type Capture, type CapturedStep, type CaptureOptions, capture } from './capture.ts'
export type { CertificateFault } from './certificates.ts'
export { type EndpointOptions, type ScriptedEndpoint, type SecureEndpoint, startEndpoint } from './endpoint.ts'
export type { NetworkFailure } from './failures.ts'
export { fixtures } from './fixtures.ts'
export { type ManualClock, manualClock } from './manual-clock.ts'
export type { Recorded, RecordedRequest, RequestParts } from './recorder.ts'
export type { Script, ScriptedAnswer, ScriptedReset, Step } from './script.ts'
export { type SignedRequest, signedRequest } from './signed-request.ts'

/**
 * Tools for tests of either end: messages, requests signed as the destination signs them, an endpoint that responds by a
 * script, a network that records requests, a clock that a test moves, and the contract of queues as tests.
 *
 * @module hookline/testing
 */

export type { SignatureCause, SignatureCauseCode } from './message/explain/causes.ts'
export {
  type ExplainSignatureOptions,
  explainSignature,
  type SignatureExplanation,
} from './message/explain/explain-signature.ts'
export {
  type Capture,
  type CapturedStep,
  type CaptureOptions,
  capture,
  type NetworkFailure,
} from './testing/capture.ts'
export type { CertificateFault } from './testing/certificates.ts'
export { type EndpointOptions, type ScriptedEndpoint, type SecureEndpoint, startEndpoint } from './testing/endpoint.ts'
export { fixtures } from './testing/fixtures.ts'
export type { KnownSender } from './testing/known-senders.ts'
export { type ManualClock, manualClock } from './testing/manual-clock.ts'
export type {
  DeliveredOptions,
  MessagePattern,
  Platform,
  PlatformMessage,
  PlatformOptions,
  RefusedCall,
} from './testing/platform/api.ts'
export { startPlatform } from './testing/platform/index.ts'
export type { Recorded, RecordedRequest, RequestParts } from './testing/recorder.ts'
export type { Script, ScriptedAnswer, ScriptedReset, Step } from './testing/script.ts'
export {
  type HeaderRequest,
  type HeaderRequestOptions,
  type SignedRequest,
  type SignedRequestOptions,
  signedRequest,
} from './testing/signed-request.ts'
export type { QueueTest, TestedQueue, TestQueueOptions } from './testing/test-queue/context.ts'
export { testQueue } from './testing/test-queue/index.ts'

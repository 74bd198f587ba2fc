/**
 * Tools to test receivers and senders: messages, requests that are signed as a destination signs them, an endpoint that answers from a
 * script, a network that records requests, a clock that a test advances, and tests for the contract of queues.
 *
 * @module hookline/testing
 */

export type { SignatureCause, SignatureCauseCode } from './protocol/explain/causes.ts'
export {
  type ExplainSignatureOptions,
  explainSignature,
  type SignatureExplanation,
} from './protocol/explain/explain-signature.ts'
export {
  type Capture,
  type CapturedStep,
  type CaptureOptions,
  capture,
  type NetworkFailure,
} from './testing/capture.ts'
export type { CertificateFault } from './testing/certificates.ts'
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
} from './testing/platform/platform-types.ts'
export { startPlatform } from './testing/platform/start-platform.ts'
export type { Recorded, RecordedRequest, RequestParts } from './testing/recorder.ts'
export type { Script, ScriptedAnswer, ScriptedReset, Step } from './testing/script.ts'
export {
  type EndpointOptions,
  type ScriptedEndpoint,
  type SecureEndpoint,
  startEndpoint,
} from './testing/scripted-endpoint.ts'
export {
  type HeaderRequest,
  type HeaderRequestOptions,
  type SignedRequest,
  type SignedRequestOptions,
  signedRequest,
} from './testing/signed-request.ts'
export type { QueueTest, TestedQueue, TestQueueOptions } from './testing/test-queue/context.ts'
export { testQueue } from './testing/test-queue/test-queue.ts'

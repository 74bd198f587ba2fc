/** The errors of failed requests, by the names that a script uses for them. */

import { CERTIFICATE_FAULTS, type CertificateFault } from './certificates.ts'
import type { Response } from './script.ts'

/**
 * Why a request could not be sent: the port is closed (`refused`), the host has no address (`dns`), the connection took too
 * long (`timeout`), or the client refused the certificate.
 */
export type NetworkFailure = 'refused' | 'dns' | 'timeout' | CertificateFault

/** The errors of Node and undici. Those of undici's parser have no code. */
const ERRORS = {
  refused: { code: 'ECONNREFUSED', message: 'connect ECONNREFUSED' },
  dns: { code: 'ENOTFOUND', message: 'getaddrinfo ENOTFOUND' },
  timeout: { code: 'UND_ERR_CONNECT_TIMEOUT', message: 'Connect Timeout Error', name: 'ConnectTimeoutError' },
  self_signed: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT', message: 'self-signed certificate' },
  expired: { code: 'CERT_HAS_EXPIRED', message: 'certificate has expired' },
  wrong_name: { code: 'ERR_TLS_CERT_ALTNAME_INVALID', message: "Hostname/IP does not match certificate's altnames" },
  private_ca: { code: 'SELF_SIGNED_CERT_IN_CHAIN', message: 'self-signed certificate in certificate chain' },
  reset: { code: 'ECONNRESET', message: 'read ECONNRESET' },
  cut_off: {
    code: 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    message: 'Response body length does not match content-length header',
    name: 'ResponseContentLengthMismatchError',
  },
  cut_off_chunk: {
    message: 'Response does not match the HTTP/1.1 protocol (Invalid EOF state)',
    name: 'HTTPParserError',
  },
  close: { code: 'UND_ERR_SOCKET', message: 'other side closed', name: 'SocketError' },
  garbage: { message: 'Response does not match the HTTP/1.1 protocol', name: 'HTTPParserError' },
  aborted: { code: 'UND_ERR_ABORTED', message: 'Request aborted', name: 'AbortError' },
} as const satisfies Readonly<Record<string, { code?: string; message: string; name?: string }>>

const NETWORK_FAILURES: readonly unknown[] = [
  'refused',
  'dns',
  'timeout',
  ...CERTIFICATE_FAULTS,
] satisfies NetworkFailure[]

/** The response of a step that is a failure; undefined for every other. */
export function readFailure(step: unknown): Response | undefined {
  if (step instanceof Error) return { kind: 'fail', error: () => step }
  if (!NETWORK_FAILURES.includes(step)) return undefined
  return { kind: 'fail', error: () => createFailure(step as NetworkFailure) }
}

/** A new error with the code, name and message of the real one. */
export function createFailure(failure: keyof typeof ERRORS): Error {
  const { message, ...rest } = ERRORS[failure]
  return Object.assign(new Error(message), rest)
}

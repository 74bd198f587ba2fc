/**
 * Opens the connections of a sender and a client. Certificates are verified on every connection, whatever the
 * environment variables say.
 */

import type { LookupFunction, Socket } from 'node:net'
import { createSecureContext, type TLSSocket } from 'node:tls'
import { requireCertificates } from './runtime.ts'
import { buildConnector } from './undici.ts'

export type Connector = buildConnector.connector

export interface ConnectorOptions {
  readonly ca: readonly string[] | undefined
  readonly timeoutMs: number
  /**
   * How long to try each address of a host name, in milliseconds. The last address gets all of the remaining time.
   * Default: 1000, or a fifth of `timeoutMs` if that is less.
   */
  readonly addressTimeoutMs?: number | undefined
  readonly responseLimit: number
  /** Closes every connection when it aborts, including connections that are being opened. */
  readonly signal?: AbortSignal | undefined
  readonly lookup?: LookupFunction | undefined
}

/**
 * Creates a connector that refuses untrusted certificates. It refuses self-signed certificates even when `ca` or the
 * machine trusts them ("Outbound event delivery", Authentication 4).
 */
export function createConnector(options: ConnectorOptions): Connector {
  const { ca, timeoutMs, responseLimit, lookup, signal } = options
  // The default of Node.js, 250 ms, is too short for a slow link. After four addresses that do not respond, there is still time for a
  // fifth.
  const { addressTimeoutMs = Math.min(1_000, Math.ceil(timeoutMs / 5)) } = options
  requireCertificates()
  const connect = buildConnector({
    rejectUnauthorized: true, // Verifies even if NODE_TLS_REJECT_UNAUTHORIZED is 0.
    maxCachedSessions: 0, // No TLS session is resumed, because a resumed TLS 1.2 session has no certificate to check.
    timeout: timeoutMs,
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
    allowH2: false,
    secureContext: ca && createSecureContext({ ca: [...ca] }),
    lookup,
    signal,
  })
  return (target, callback) => {
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      if (target.protocol !== 'https:' || isSignedByAnother(socket as TLSSocket))
        return callback(null, limitResponses(socket, responseLimit * BYTES_PER_BODY_BYTE))
      socket.destroy()
      callback(Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }), null)
    })
  }
}

/** How many bytes may arrive for each byte of a body. A byte that is sent as a separate chunk takes six bytes. */
const BYTES_PER_BODY_BYTE = 8

const TOO_LONG = Object.assign(new Error('The response is longer than its limit.'), {
  code: 'HOOKLINE_RESPONSE_TOO_LONG',
})

/**
 * Checks a connection each time that more bytes than the limit have arrived, and closes it if nothing was sent since the
 * last check. undici itself limits neither informational responses nor the bytes between chunks.
 */
function limitResponses<Connection extends Socket>(socket: Connection, limit: number): Connection {
  // The numbers of bytes at the last check.
  let bytesRead = 0
  let bytesWritten = 0
  // undici listens to `readable` as well. A listener for `data` would take the bytes from undici.
  return socket.on('readable', () => {
    if (socket.bytesRead - bytesRead <= limit) return
    if (socket.bytesWritten === bytesWritten) socket.destroy(TOO_LONG)
    bytesRead = socket.bytesRead
    bytesWritten = socket.bytesWritten
  })
}

/** Returns whether the server's certificate was not signed with its own key. Without a certificate, returns false. */
function isSignedByAnother(socket: TLSSocket): boolean {
  const certificate = socket.getPeerX509Certificate()
  return certificate?.verify(certificate.publicKey) === false
}

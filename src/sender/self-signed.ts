/** Refuses endpoints with a self-signed certificate ("Outbound event delivery", Authentication 4). */

import { TLSSocket } from 'node:tls'
import type { buildConnector } from 'undici'

/**
 * Wraps a connector so that it destroys a socket whose endpoint has a self-signed certificate, even one that the option `ca`
 * or the machine trusts. Untrusted certificates fail before, in the connector.
 */
export function refuseSelfSigned(connect: buildConnector.connector): buildConnector.connector {
  return (target, callback) => {
    connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null)
      if (!isSelfSigned(socket)) return callback(null, socket)
      socket.destroy()
      const refusal = new Error('self-signed certificate')
      callback(Object.assign(refusal, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }), null)
    })
  }
}

function isSelfSigned(socket: object): boolean {
  if (!(socket instanceof TLSSocket)) return false
  const certificate = socket.getPeerX509Certificate()
  return certificate?.verify(certificate.publicKey) === true
}

/** Certificates that TLS clients should refuse. They are created when needed, so that the package holds no private key. */

import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import {
  bitString,
  explicit,
  implicit,
  integer,
  objectId,
  octetString,
  sequence,
  setOf,
  TRUE,
  utcTime,
  utf8String,
} from './der.ts'

/**
 * The fault of a certificate. `self_signed`: the certificate is self-signed. `expired`: it has expired. `wrong_name`: it is for another
 * host. `private_ca`: clients do not know the authority that signed it. A client notices that a certificate has expired or is for another
 * host only if the client trusts the authority.
 */
export type CertificateFault = 'self_signed' | 'expired' | 'wrong_name' | 'private_ca'

export const CERTIFICATE_FAULTS: readonly CertificateFault[] = ['self_signed', 'expired', 'wrong_name', 'private_ca']

/** The key and the certificate of a TLS server, and the certificate that a client must trust, all as PEM. */
export interface ServerCertificate {
  readonly server: { readonly key: string; readonly cert: string }
  readonly ca: string
}

interface Party {
  readonly name: Buffer
  readonly keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject }
}

/** Creates a certificate for `localhost` and 127.0.0.1, with this fault. */
export function createCertificate(fault: CertificateFault): ServerCertificate {
  const server = createParty('localhost')
  const authority = fault === 'self_signed' ? server : createParty('Hookline test authority')
  const cert = certify(server, authority, {
    until: fault === 'expired' ? '20010101000000Z' : '20491231235959Z',
    extensions: fault === 'wrong_name' ? [namesOf('wrong.example')] : [namesOf('localhost', [127, 0, 0, 1])],
  })
  const ca =
    authority === server ? cert : certify(authority, authority, { until: '20491231235959Z', extensions: AUTHORITY })
  const key = server.keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
  // Servers often send the certificate of their private authority, too. Clients have a separate error code for such a chain.
  return { server: { key, cert: fault === 'private_ca' ? cert + ca : cert }, ca }
}

/** Creates a party with a random organization: clients find an authority by its name, and a test may trust several authorities. */
function createParty(name: string): Party {
  const attribute = (type: string, value: string) => setOf(sequence(objectId(type), utf8String(value)))
  const [organization, commonName] = ['2.5.4.10', '2.5.4.3']
  return {
    name: sequence(attribute(organization, randomBytes(8).toString('hex')), attribute(commonName, name)),
    keys: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  }
}

const ECDSA_WITH_SHA256 = sequence(objectId('1.2.840.10045.4.3.2'))

/**
 * Creates a certificate (RFC 5280, section 4.1). The dates are fixed, so that the certificate is also valid in a test that sets another
 * time.
 */
function certify(subject: Party, issuer: Party, terms: { until: string; extensions: readonly Buffer[] }): string {
  const version3 = explicit(0, integer(2)) // Versions are counted from 0.
  const serial = Buffer.concat([Buffer.from([1]), randomBytes(15)]) // The first byte keeps the number positive and 16 bytes long.
  const content = sequence(
    version3,
    integer(serial),
    ECDSA_WITH_SHA256,
    issuer.name,
    sequence(utcTime('20000101000000Z'), utcTime(terms.until)),
    subject.name,
    subject.keys.publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...terms.extensions)),
  )
  const signature = sign('sha256', content, issuer.keys.privateKey)
  return toPem(sequence(content, ECDSA_WITH_SHA256, bitString(signature)))
}

const KEY_CERT_SIGN = bitString(Buffer.from([0b0000_0100]), 2)

/**
 * Two critical extensions of an authority's certificate, the basic constraints and the key usage. They allow the key of
 * the authority to sign certificates, and nothing else.
 */
const AUTHORITY: readonly Buffer[] = [
  sequence(objectId('2.5.29.19'), TRUE, octetString(sequence(TRUE))),
  sequence(objectId('2.5.29.15'), TRUE, octetString(KEY_CERT_SIGN)),
]

/** Writes the extension with the subject alternative names, which a client compares with the URL. */
function namesOf(host: string, address?: readonly number[]): Buffer {
  const dnsName = implicit(2, Buffer.from(host))
  const names = address === undefined ? [dnsName] : [dnsName, implicit(7, Buffer.from(address))]
  return sequence(objectId('2.5.29.17'), octetString(sequence(...names)))
}

function toPem(bytes: Buffer): string {
  const lines = bytes.toString('base64').match(/.{1,64}/g) ?? []
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n')
}

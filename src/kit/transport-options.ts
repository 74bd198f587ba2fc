/** Checks the options about connections that a sender and a client share: `ca` and `dispatcher`. */

import { X509Certificate } from 'node:crypto'
import { hasMethods, invalidOption, kindOf } from './checks.ts'

/**
 * Reads `ca`, the text or bytes of one or more PEM files, as certificates. Throws for a certificate that cannot be
 * read, because Node.js would skip it without an error, and then refuse every server.
 */
export function readCertificates(ca: unknown): readonly string[] | undefined {
  if (ca === undefined) return undefined
  const files = (Array.isArray(ca) ? ca : [ca]).map(splitCertificates)
  if (files.length > 0 && files.every(({ length }) => length > 0)) return files.flat()
  const advice = "Pass the content of a PEM file, for example await readFile('ca.pem')."
  throw invalidOption('ca', 'must contain readable PEM certificates', kindOf(ca), advice)
}

/** Lists the certificates in a file. Returns an empty list if one of them cannot be read. */
function splitCertificates(file: unknown): readonly string[] {
  if (typeof file !== 'string' && !(file instanceof Uint8Array)) return []
  const [, ...certificates] = `\n${Buffer.from(file).toString('latin1')}`.split(
    /(?=-----BEGIN [A-Z0-9 ]*CERTIFICATE-----)/,
  )
  try {
    for (const certificate of certificates) new X509Certificate(certificate)
    return certificates
  } catch {
    return []
  }
}

/**
 * Checks the option `dispatcher`.
 *
 * @param others The options that have no effect with a dispatcher. Each value says whether the option is set.
 */
export function requireDispatcher(dispatcher: unknown, others: Readonly<Record<string, boolean>>): void {
  if (dispatcher === undefined) return
  if (!hasMethods(dispatcher, ['dispatch'])) {
    const advice = 'Pass a dispatcher, for example new ProxyAgent(url).'
    throw invalidOption('dispatcher', 'must be an undici dispatcher', kindOf(dispatcher), advice)
  }
  for (const [other, isSet] of Object.entries(others)) {
    if (!isSet) continue
    const rule = `cannot be combined with \`${other}\`, because a dispatcher opens its own connections`
    throw invalidOption('dispatcher', rule, undefined, 'Remove one of the two options.')
  }
}

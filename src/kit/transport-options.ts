/** Checks of the options about connections that a sender and a client share: `ca` and `dispatcher`. */

import { X509Certificate } from 'node:crypto'
import { invalidOption, kindOf } from './checks.ts'

/**
 * Reads `ca`: text or bytes of PEM files, one or a list. Node skips a certificate that it cannot read, without an
 * error, and then refuses every server.
 */
export function readCertificates(ca: unknown): readonly string[] | undefined {
  if (ca === undefined) return undefined
  const files = (Array.isArray(ca) ? ca : [ca]).map(readFile)
  if (files.length > 0 && files.every(({ length }) => length > 0)) return files.flat()
  const advice = "Pass the content of a PEM file, for example await readFile('ca.pem')."
  throw invalidOption('ca', 'must be PEM certificates that can be read', kindOf(ca), advice)
}

function readFile(file: unknown): readonly string[] {
  if (typeof file !== 'string' && !(file instanceof Uint8Array)) return []
  const [, ...certificates] = `\n${Buffer.from(file as string).toString('latin1')}`.split(
    /(?=-----BEGIN [A-Z0-9 ]*CERTIFICATE-----)/,
  )
  try {
    for (const certificate of certificates) new X509Certificate(certificate)
    return certificates
  } catch {
    return []
  }
}

export function requireDispatcher(dispatcher: unknown, others: Readonly<Record<string, boolean>>): void {
  if (dispatcher === undefined) return
  if (typeof (dispatcher as { dispatch?: unknown } | null)?.dispatch !== 'function') {
    const advice = 'Pass one of undici, for example new ProxyAgent(url).'
    throw invalidOption('dispatcher', 'must be a Dispatcher', kindOf(dispatcher), advice)
  }
  for (const [other, isGiven] of Object.entries(others)) {
    if (!isGiven) continue
    const rule = `opens its own connections, so \`${other}\` has no effect on it`
    throw invalidOption('dispatcher', rule, `dispatcher and ${other}`, 'Remove one of them.')
  }
}

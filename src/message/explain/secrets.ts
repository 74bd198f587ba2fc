/** The secrets that a signer may have used instead of the one that was passed. */

import type { SignatureCauseCode } from './causes.ts'

type Change = readonly [code: SignatureCauseCode, change: (secret: string) => string | Uint8Array | undefined]

const CHANGES: readonly Change[] = [
  ['secret_space_extra', (secret) => secret.trim()],
  ['secret_line_break_lost', (secret) => `${secret}\n`],
  ['secret_line_break_lost', (secret) => `${secret}\r\n`],
  ['secret_space_lost', (secret) => `${secret} `],
  ['secret_space_lost', (secret) => ` ${secret}`],
  ['secret_quotes_extra', (secret) => /^(["'`])(.*)\1$/s.exec(secret)?.[2]],
  ['secret_quotes_lost', (secret) => `"${secret}"`],
  ['secret_quotes_lost', (secret) => `'${secret}'`],
  ['secret_label_extra', (secret) => /^(?:export )?[A-Za-z_][A-Za-z0-9_]*=(.*)$/s.exec(secret)?.[1]],
  ['secret_hex_decoded', (secret) => (/^(?:[0-9a-f]{2})+$/i.test(secret) ? Buffer.from(secret, 'hex') : undefined)],
  ['secret_base64_decoded', decodeBase64],
  ['secret_hex_encoded', (secret) => Buffer.from(secret).toString('hex')],
  ['secret_hex_encoded', (secret) => Buffer.from(secret).toString('hex').toUpperCase()],
  ['secret_base64_encoded', (secret) => Buffer.from(secret).toString('base64')],
  ['secret_base64_encoded', (secret) => Buffer.from(secret).toString('base64url')],
  ['secret_latin1', (secret) => Buffer.from(secret, 'latin1')],
]

export interface SecretVariant {
  readonly code: SignatureCauseCode
  readonly key: Uint8Array
}

export function listSecrets(secret: string): readonly SecretVariant[] {
  const seen = new Set([Buffer.from(secret).toString('hex')])
  const variants: SecretVariant[] = []
  for (const [code, change] of CHANGES) {
    const changed = change(secret)
    if (changed === undefined || changed.length === 0) continue
    const key = Buffer.from(changed)
    if (seen.has(key.toString('hex'))) continue
    seen.add(key.toString('hex'))
    variants.push({ code, key })
  }
  return variants
}

function decodeBase64(secret: string): Uint8Array | undefined {
  return /^[A-Za-z0-9+/_-]+={0,2}$/.test(secret) ? Buffer.from(secret, 'base64') : undefined
}

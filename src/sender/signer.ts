/** Signs what a sender posts; what several senders of one secret post, once for all of them. */

import { createHmac, randomBytes } from 'node:crypto'
import { createKeys } from '../message/signature.ts'

export interface Signer {
  sign(bytes: Uint8Array): string
}

/** Known to this process only. Created with the first signer: while modules load, workerd has no random values. */
let salt: Buffer | undefined

/** The signature that was made last of shared bytes; null before the first. */
const LATEST = Symbol('latest signature')

interface Signature {
  /** A digest of the secret, which outlives its sender here and tells nothing: it is salted. */
  readonly secret: string
  readonly value: string
}

type SharedBytes = Uint8Array & { [LATEST]?: Signature | null }

/** Notes that several senders post these bytes, which do not change any more. */
export function shareBytes(bytes: Uint8Array): void {
  ;(bytes as SharedBytes)[LATEST] = null
}

export function createSigner(text: string): Signer {
  const [key] = createKeys(text)
  salt ??= randomBytes(32)
  const secret = createHmac('sha256', salt).update(text).digest('hex')

  return {
    sign(bytes: SharedBytes) {
      const latest = bytes[LATEST]
      if (latest?.secret === secret) return latest.value
      const value = (key as NonNullable<typeof key>).sign(bytes)
      if (latest !== undefined) bytes[LATEST] = { secret, value }
      return value
    },
  }
}

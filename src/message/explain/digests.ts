/** The ways in which people combine a secret and a body into a digest. */

import { createHash, createHmac } from 'node:crypto'
import type { SignatureCauseCode } from './causes.ts'
import type { HashName } from './signature-forms.ts'

export interface Digest {
  compute(hash: HashName, key: Uint8Array, bytes: Uint8Array): string
}

export const HMAC: Digest = {
  compute: (hash, key, bytes) => createHmac(hash, key).update(bytes).digest('hex'),
}

export const WRONG_DIGESTS: readonly (Digest & { readonly code: SignatureCauseCode })[] = [
  { code: 'key_unused', compute: (hash, _key, bytes) => createHash(hash).update(bytes).digest('hex') },
  { code: 'key_before_body', compute: (hash, key, bytes) => createHash(hash).update(key).update(bytes).digest('hex') },
  { code: 'key_behind_body', compute: (hash, key, bytes) => createHash(hash).update(bytes).update(key).digest('hex') },
  { code: 'key_and_body_swapped', compute: (hash, key, bytes) => HMAC.compute(hash, bytes, key) },
]

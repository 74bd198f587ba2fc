/** Explains to developers why a signature does not match. The search is too slow to run while a request is handled. */

import { isUint8Array } from 'node:util/types'
import { kindOf, requireBytes } from '../error.ts'
import { sign, verify } from '../signature.ts'
import { causeOf, type SignatureCause, type SignatureCauseCode } from './causes.ts'
import { search } from './search.ts'
import { readSignature } from './signature-forms.ts'

/** Options of {@link explainSignature}. */
export interface ExplainSignatureOptions {
  /**
   * Whether the result contains the signature that these bytes should have. Anyone who sees this signature can make a
   * receiver accept these bytes.
   *
   * @default false
   */
  readonly expected?: boolean
  /**
   * The number of digested bytes after which the search ends. Set this option for untrusted requests: 40 million bytes take a tenth of a
   * second.
   *
   * @default no limit
   */
  readonly maxBytes?: number
}

/** Why a signature does not match. Contains no part of the secret, and no digest unless `expected` asks for it. */
export interface SignatureExplanation {
  /**
   * `matches`: the signature is correct. `explained`: the `causes` explain why it does not match. `unexplained`: no deviation that was
   * tried explains why it does not match.
   */
  readonly verdict: 'matches' | 'explained' | 'unexplained'
  /** The whole explanation in sentences. */
  readonly message: string
  /** The deviations; empty when the signature matches. */
  readonly causes: readonly SignatureCause[]
  /** The codes of the deviations that were tried on the secret, the body and the digest. */
  readonly tried: readonly SignatureCauseCode[]
  /** The correct signature of the body. Present only if the option `expected` is true. */
  readonly expected?: string
}

/**
 * Explains why a signature does not match ("Outbound event delivery", Authentication). Tries common mistakes: another hash, another
 * encoding, a line break, a serialiser of another language, a secret in quotation marks, and each of these with a line break at the end. A
 * body of 500 KB takes about a second, so do not call this function while you handle a request.
 *
 * @param body The exact bytes that arrived.
 * @param signature The value of `X-Signature`, exactly as it arrived; undefined when it was missing.
 * @param secret The shared secret.
 * @throws TypeError for a body that is not bytes, a signature that is not text, an empty secret, and unknown options.
 * @example
 * const { message } = explainSignature(bytes, request.headers['x-signature'], secret)
 */
export function explainSignature(
  body: Uint8Array,
  signature: string | undefined,
  secret: string,
  options: ExplainSignatureOptions = {},
): SignatureExplanation {
  requireBytes(body, 'explainSignature: body')
  requireSignature(signature)
  const right = sign(body, secret)
  const { expected, maxBytes } = readOptions(options)
  const explanation = explain(body, signature, secret, maxBytes)
  return expected ? { ...explanation, expected: right } : explanation
}

function explain(
  body: Uint8Array,
  signature: string | undefined,
  secret: string,
  maxWork?: number,
): SignatureExplanation {
  if (verify(body, signature, secret)) return result('matches', 'The signature matches.')
  if (signature === undefined || signature.trim() === '') return explained([causeOf('signature_missing')])
  if (holdsSecret(signature.trim(), secret)) return explained([causeOf('signature_is_secret')])

  const { readings, causes: formCauses } = readSignature(signature)
  if (readings.length === 0) return explained(formCauses)
  const { causes, tried, complete } = search(body, secret, readings, maxWork)
  if (causes) return explained(causes, tried)

  const extent = complete
    ? `${tried.length} deviations were tried, each alone and with a line break.`
    : `Only ${tried.length} deviations were tried, because the body or the signature is long.`
  const sentences = [
    `The signature does not match, and nothing that was tried explains it. The signature covers other bytes, or was made with another secret. Compare the secrets at both ends, and verify the body as it arrived. ${extent}`,
    ...formCauses.map(({ message }) => message),
  ]
  return result('unexplained', sentences.join('\n'), formCauses, tried)
}

/**
 * Returns whether a signature holds the secret, as text or as base64. A short secret must be the whole signature, because a digest may
 * contain it by chance.
 */
function holdsSecret(signature: string, secret: string): boolean {
  const forms = [secret.trim(), Buffer.from(secret).toString('base64')]
  return forms.some((form) => (form.length < 8 ? signature === form : signature.includes(form)))
}

function explained(causes: readonly SignatureCause[], tried: readonly SignatureCauseCode[] = []): SignatureExplanation {
  return result('explained', causes.map(({ message }) => message).join('\n'), causes, tried)
}

function result(
  verdict: SignatureExplanation['verdict'],
  message: string,
  causes: readonly SignatureCause[] = [],
  tried: readonly SignatureCauseCode[] = [],
): SignatureExplanation {
  return { verdict, message, causes, tried }
}

function requireSignature(signature: unknown): void {
  if (signature === undefined || typeof signature === 'string') return
  throw new TypeError(
    `explainSignature: signature must be a string. Got ${kindOf(signature)}. Pass the value of \`X-Signature\`, or undefined when it was missing.`,
  )
}

function readOptions(options: unknown): ExplainSignatureOptions {
  const { expected = false, maxBytes = Number.POSITIVE_INFINITY, ...others } = Object(options)
  if (typeof options !== 'object' || options === null || Array.isArray(options) || isUint8Array(options)) {
    throw wrongOptions(kindOf(options))
  }
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw wrongOptions(`an option \`${unknown}\``)
  if (typeof expected !== 'boolean') throw wrongOptions(`${kindOf(expected)} as \`expected\``)
  if (typeof maxBytes === 'number' && maxBytes > 0) return { expected, maxBytes }
  throw wrongOptions(`${kindOf(maxBytes)} as \`maxBytes\``)
}

function wrongOptions(found: string): TypeError {
  return new TypeError(
    `explainSignature: options must be an object. It may have \`expected\` (true or false) and \`maxBytes\` (a number above 0). Got ${found}. Pass, for example, { expected: true }.`,
  )
}

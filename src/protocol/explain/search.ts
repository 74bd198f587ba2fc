/** Looks for what was signed: tries each deviation alone, and then with a line break at the end of the body or the secret. */

import { causeOf, reserialisedBy, type SignatureCause } from './causes.ts'
import { changeBody, type Digest, HMAC, listSecrets, WRONG_DIGESTS } from './deviations.ts'
import { readJsonText } from './json-text.ts'
import { rewrite, WRITERS } from './json-writers.ts'
import type { Reading } from './signature-forms.ts'

export interface SearchResult {
  /**
   * The deviations that explain the signature: those in its form, and at most two in the secret, the body or the digest. Undefined if no
   * deviations explain the signature.
   */
  readonly causes: readonly SignatureCause[] | undefined
  readonly tried: readonly SignatureCause['code'][]
  readonly complete: boolean
  /** The work that was done. One unit is the work of digesting one byte. */
  readonly work: number
}

/** The work of computing a digest, in addition to one unit for each byte. */
const DIGEST_WORK = 3_000

/**
 * The maximum work of reading or writing JSON, for each byte of the body. It was measured with short members, which take the most work.
 */
const JSON_WORK = 150

/**
 * The maximum length of an indented form of the body, as a multiple of the length of the body. With one number on each line, five levels
 * deep, the form is ten times as long.
 */
const MAX_GROWTH = 20

/** A way in which the signer may have signed. */
interface Candidate {
  readonly digest: Digest
  readonly key: Uint8Array
  readonly bytes: Uint8Array
  readonly causes: readonly SignatureCause[]
}

/** The difference from a correct signature, and its cause. */
type Deviation = Partial<Candidate> & Pick<Candidate, 'causes'>

/**
 * Looks for the deviations that explain a signature.
 *
 * @param maxWork The maximum work, in digested bytes. The digest that exceeds this maximum is still computed.
 */
export function search(
  bytes: Uint8Array,
  secret: string,
  readings: readonly Reading[],
  maxWork = Number.POSITIVE_INFINITY,
): SearchResult {
  const tried = new Set<SignatureCause['code']>()
  // The digest is computed once for all readings with the same hash and prefix.
  const readingsByDigest = [...Map.groupBy(readings, ({ hash, prefix }) => `${hash} ${prefix}`).values()]
  const work: Work = { done: 0, max: maxWork }
  const resultOf = (causes: SearchResult['causes'], complete: boolean): SearchResult => {
    return { causes, tried: [...tried], complete, work: work.done }
  }
  for (const { digest, key, bytes: signed, causes } of listCandidates(bytes, secret, work)) {
    if (work.done > work.max) return resultOf(undefined, false)
    for (const { code } of causes) tried.add(code)
    for (const group of readingsByDigest) {
      const [{ hash, prefix }] = group as [Reading]
      work.done += signed.length + DIGEST_WORK
      const computed = digest.compute(hash, key, prefix === '' ? signed : Buffer.concat([Buffer.from(prefix), signed]))
      const match = group.find((reading) => reading.fits(computed))
      if (match !== undefined) return resultOf([...match.causes, ...causes], true)
    }
  }
  return resultOf(undefined, true)
}

interface Work {
  done: number
  readonly max: number
}

/** Lists the correct signature, then each deviation alone, then each with a second deviation. */
function* listCandidates(given: Uint8Array, secret: string, work: Work): Generator<Candidate> {
  const body = Buffer.from(given.buffer, given.byteOffset, given.length)
  const right: Candidate = { digest: HMAC, key: Buffer.from(secret), bytes: body, causes: [] }
  const secrets = listSecrets(secret).map(({ key, code }) => ({ key, causes: [causeOf(code)] }))
  const singles: Deviation[] = []

  yield right
  for (const single of listDeviations(body, secrets, work)) {
    singles.push(single)
    yield { ...right, ...single }
  }
  // The second deviation is a line break that was lost or added at the end of the body, or lost at the end of the secret.
  const hasCode = (code: SignatureCause['code']) => (each: Deviation) => each.causes[0]?.code === code
  const extra = singles.find(hasCode('body_line_break_extra'))
  const endedSecrets = secrets.filter(hasCode('secret_line_break_lost'))
  for (const single of singles) {
    const { bytes = body, key, causes } = single
    const longer = Buffer.concat([bytes, Buffer.from('\n')])
    yield { ...right, ...single, bytes: longer, causes: [...causes, causeOf('body_line_break_lost')] }
    if (extra && !single.bytes) yield { ...right, ...extra, ...single, causes: [...causes, ...extra.causes] }
    if (key) continue
    for (const other of endedSecrets) {
      yield { ...right, ...single, ...other, causes: [...other.causes, ...causes] }
    }
  }
}

function* listDeviations(body: Buffer, secrets: readonly Deviation[], work: Work): Generator<Deviation> {
  for (const { code, ...digest } of WRONG_DIGESTS) yield { digest, causes: [causeOf(code)] }
  yield* secrets
  yield* listBodies(body, work)
}

/** Lists the bytes that may have been signed in place of the body. */
function* listBodies(body: Buffer, work: Work): Generator<Deviation & Pick<Candidate, 'bytes'>> {
  for (const { code, bytes } of changeBody(body)) yield { bytes, causes: [causeOf(code)] }
  work.done += body.length * JSON_WORK
  const json = work.done > work.max ? undefined : readJsonText(body.toString())
  if (json === undefined) return
  // Serialisers that write the same bytes are listed as one deviation.
  const writersByText = Map.groupBy(WRITERS, (writer) => {
    work.done += body.length * JSON_WORK
    return work.done > work.max ? undefined : rewrite(json, writer, body.length * MAX_GROWTH)
  })
  for (const [text, writers] of writersByText) {
    if (text === undefined) continue
    yield { bytes: Buffer.from(text), causes: [reserialisedBy(writers.map(({ name }) => name))] }
  }
}

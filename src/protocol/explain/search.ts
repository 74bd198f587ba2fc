/** Looks for what was signed: what differs in one way, then what also has another line break at its end. */

import { causeOf, reserialisedBy, type SignatureCause } from './causes.ts'
import { changeBody, type Digest, HMAC, listSecrets, WRONG_DIGESTS } from './deviations.ts'
import { readJsonText } from './json-text.ts'
import { rewrite, WRITERS } from './json-writers.ts'
import type { Reading } from './signature-forms.ts'

export interface SearchResult {
  /** The deviations that explain the signature, at most two and those of its form; undefined when none do. */
  readonly causes: readonly SignatureCause[] | undefined
  readonly tried: readonly SignatureCause['code'][]
  readonly complete: boolean
  /** What was done, in bytes that are digested. */
  readonly work: number
}

/** What a digest costs besides its bytes. */
const DIGEST_WORK = 3_000

/** What reading or writing JSON costs for each byte of the body, at most: all of it may be short members. */
const JSON_WORK = 150

/** How many times as long as the body its indented forms may be: numbers one a line, five levels deep, take ten. */
const MAX_GROWTH = 20

interface Candidate {
  readonly digest: Digest
  readonly key: Uint8Array
  readonly bytes: Uint8Array
  readonly causes: readonly SignatureCause[]
}

type Deviation = Partial<Candidate> & Pick<Candidate, 'causes'>

/** @param maxWork The most work, in bytes that are digested. What is under way ends all the same. */
export function search(
  bytes: Uint8Array,
  secret: string,
  readings: readonly Reading[],
  maxWork = Number.POSITIVE_INFINITY,
): SearchResult {
  const tried = new Set<SignatureCause['code']>()
  const ofOneDigest = [...Map.groupBy(readings, ({ hash, prefix }) => `${hash} ${prefix}`).values()]
  const work: Work = { done: 0, max: maxWork }
  const end = (causes: SearchResult['causes'], complete: boolean): SearchResult => {
    return { causes, tried: [...tried], complete, work: work.done }
  }
  for (const { digest, key, bytes: signed, causes } of listCandidates(bytes, secret, work)) {
    if (work.done > work.max) return end(undefined, false)
    for (const { code } of causes) tried.add(code)
    for (const alike of ofOneDigest) {
      const [{ hash, prefix }] = alike as [Reading]
      work.done += signed.length + DIGEST_WORK
      const found = digest.compute(hash, key, prefix === '' ? signed : Buffer.concat([Buffer.from(prefix), signed]))
      const fitting = alike.find((reading) => reading.fits(found))
      if (fitting !== undefined) return end([...fitting.causes, ...causes], true)
    }
  }
  return end(undefined, true)
}

interface Work {
  done: number
  readonly max: number
}

function* listCandidates(given: Uint8Array, secret: string, work: Work): Generator<Candidate> {
  const body = Buffer.from(given.buffer, given.byteOffset, given.length)
  const right: Candidate = { digest: HMAC, key: Buffer.from(secret), bytes: body, causes: [] }
  const secrets = listSecrets(secret).map(({ key, code }) => ({ key, causes: [causeOf(code)] }))
  const singles: Deviation[] = []

  yield right
  for (const { code, ...digest } of WRONG_DIGESTS) singles.push({ digest, causes: [causeOf(code)] })
  singles.push(...secrets)
  for (const single of singles) yield { ...right, ...single }
  for (const deviation of listBodies(body, work)) {
    singles.push(deviation)
    yield { ...right, ...deviation }
  }
  const isOf = (code: SignatureCause['code']) => (each: Deviation) => each.causes[0]?.code === code
  const [extra] = singles.filter(isOf('body_line_break_extra'))
  for (const single of singles) {
    const { bytes = body, key, causes } = single
    const longer = Buffer.concat([bytes, Buffer.from('\n')])
    yield { ...right, ...single, bytes: longer, causes: [...causes, causeOf('body_line_break_lost')] }
    if (extra && !single.bytes) yield { ...right, ...extra, ...single, causes: [...causes, ...extra.causes] }
    for (const other of key ? [] : secrets.filter(isOf('secret_line_break_lost'))) {
      yield { ...right, ...single, ...other, causes: [...other.causes, ...causes] }
    }
  }
}

/** Lists the bytes that may have been signed in place of the body. */
function* listBodies(body: Buffer, work: Work): Generator<Deviation & Pick<Candidate, 'bytes'>> {
  for (const { code, bytes } of changeBody(body)) yield { bytes, causes: [causeOf(code)] }
  work.done += body.length * JSON_WORK
  const json = work.done > work.max ? undefined : readJsonText(body.toString())
  if (json === undefined) return
  // Serialisers that write the same bytes are named together.
  const writersOf = Map.groupBy(WRITERS, (writer) => {
    work.done += body.length * JSON_WORK
    return work.done > work.max ? undefined : rewrite(json, writer, body.length * MAX_GROWTH)
  })
  for (const [text, writers] of writersOf) {
    if (text === undefined) continue
    yield { bytes: Buffer.from(text), causes: [reserialisedBy(writers.map(({ name }) => name))] }
  }
}

/** Looks for what was signed: what differs in one way first, then in two, until a fixed amount of work is done. */

import { createHash } from 'node:crypto'
import { causeOf, reserialisedBy, type SignatureCause } from './causes.ts'
import { changeBody, type Digest, HMAC, listSecrets, WRONG_DIGESTS } from './deviations.ts'
import { rewriterOf, WRITERS } from './json-writers.ts'
import type { Reading } from './signature-forms.ts'

export interface SearchResult {
  /** The deviations that explain the signature, at most two and those of its form; undefined when none do. */
  readonly causes: readonly SignatureCause[] | undefined
  readonly tried: readonly SignatureCause['code'][]
  readonly complete: boolean
  readonly work: number
}

/** The most work of an explanation, in bytes that are digested or written: less than a second's worth. */
export const MAX_WORK = 300_000_000

/** What a digest costs besides its bytes. */
const DIGEST_WORK = 3_000

/** How many times as long as the body its indented forms may be: numbers one a line, five levels deep, take ten. */
const MAX_GROWTH = 20

interface Candidate {
  readonly digest: Digest
  readonly key: Uint8Array
  readonly bytes: Uint8Array
  readonly causes: readonly SignatureCause[]
}

type Deviation = Partial<Candidate> & Pick<Candidate, 'causes'>

interface Variant extends Deviation {
  readonly bytes: Buffer
  readonly isInner: boolean
}

export function search(
  bytes: Uint8Array,
  secret: string,
  readings: readonly Reading[],
  maxWork = MAX_WORK,
): SearchResult {
  const work: Work = { done: 0, max: maxWork }
  const tried = new Set<SignatureCause['code']>()
  const ofOneDigest = [...Map.groupBy(readings, ({ hash, prefix }) => `${hash} ${prefix}`).values()]
  for (const { digest, key, bytes: signed, causes } of listCandidates(bytes, secret, work)) {
    for (const { code } of causes) tried.add(code)
    for (const alike of ofOneDigest) {
      const [{ hash, prefix }] = alike as [Reading]
      work.done += signed.length + DIGEST_WORK
      const found = digest.compute(hash, key, prefix === '' ? signed : Buffer.concat([Buffer.from(prefix), signed]))
      const fitting = alike.find((reading) => reading.fits(found))
      if (fitting === undefined) continue
      return { causes: [...fitting.causes, ...causes], tried: [...tried], complete: true, work: work.done }
    }
    if (isOver(work)) break
  }
  return { causes: undefined, tried: [...tried], complete: !isOver(work), work: work.done }
}

function* listCandidates(given: Uint8Array, secret: string, work: Work): Generator<Candidate> {
  const body = Buffer.from(given.buffer, given.byteOffset, given.length)
  const right: Candidate = { digest: HMAC, key: Buffer.from(secret), bytes: body, causes: [] }
  const digests = WRONG_DIGESTS.map((digest): Deviation => ({ digest, causes: [causeOf(digest.code)] }))
  const secrets = listSecrets(secret).map(({ key, code }): Deviation => ({ key, causes: [causeOf(code)] }))
  const bodies: Variant[] = []
  const seen = new Set([fingerprint(body, work)])

  yield right
  for (const deviation of [...digests, ...secrets]) yield { ...right, ...deviation }
  for (const variant of listVariants({ bytes: body, causes: [], isInner: true }, seen, work)) {
    bodies.push(variant)
    yield { ...right, ...variant }
  }
  // For a large body, the work ends among these: the likely ones of each kind come first.
  const pairs = interleave<Deviation>([
    pair(digests, [...secrets, ...bodies]),
    pair(secrets, bodies),
    interleave(bodies.map((variant) => listVariants(variant, seen, work))),
  ])
  for (const deviation of pairs) yield { ...right, ...deviation }
}

/** What one more deviation makes of a body. Leaves out what was made before. */
function* listVariants(from: Variant, seen: Set<string>, work: Work): Generator<Variant> {
  for (const { causes, bytes, isInner } of changeOnce(from, work)) {
    if (isOver(work)) return
    const print = fingerprint(bytes, work)
    if (!seen.has(print)) yield { bytes, causes: [...from.causes, ...causes], isInner }
    seen.add(print)
  }
}

function* changeOnce({ bytes, isInner }: Variant, work: Work): Generator<Variant> {
  for (const changed of changeBody(bytes, isInner)) yield { ...changed, causes: [causeOf(changed.code)] }
  if (isInner) yield* rewriteBody(bytes, work)
}

/** What serialisers make of a body. Those that write the same bytes are named together. */
function* rewriteBody(body: Buffer, work: Work): Generator<Variant> {
  const limit = body.length * MAX_GROWTH
  const rewrite = rewriterOf(body.toString(), limit)
  if (rewrite === undefined) return
  const results = Map.groupBy(WRITERS, (writer) => {
    if (isOver(work)) return undefined
    const text = rewrite(writer)
    work.done += text?.length ?? limit // It may have been written up to there.
    return text
  })
  for (const [text, writers] of results) {
    if (text === undefined) continue
    yield { bytes: Buffer.from(text), causes: [reserialisedBy(writers.map(({ name }) => name))], isInner: false }
  }
}

function* pair(firsts: readonly Deviation[], seconds: readonly Deviation[]): Generator<Deviation> {
  for (const first of firsts) {
    for (const second of seconds) yield { ...first, ...second, causes: [...first.causes, ...second.causes] }
  }
}

function* interleave<Item>(lists: readonly Iterable<Item>[]): Generator<Item> {
  const iterators = new Set(lists.map((list) => list[Symbol.iterator]()))
  while (iterators.size > 0) {
    for (const iterator of iterators) {
      const { done, value } = iterator.next()
      if (done) iterators.delete(iterator)
      else yield value
    }
  }
}

function fingerprint(bytes: Uint8Array, work: Work): string {
  work.done += bytes.length + DIGEST_WORK
  return createHash('sha1').update(bytes).digest('base64')
}

interface Work {
  done: number
  readonly max: number
}

function isOver({ done, max }: Work): boolean {
  return done > max
}

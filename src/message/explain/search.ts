/** Looks for what was signed: what differs in one way first, then in two, until a fixed amount of work is done. */

import { createHash } from 'node:crypto'
import { changeBody } from './bodies.ts'
import { causeOf, reserialisedBy, type SignatureCause } from './causes.ts'
import { type Digest, HMAC, WRONG_DIGESTS } from './digests.ts'
import { listRewrites } from './json-rewrites.ts'
import { readJsonText } from './json-text.ts'
import { listSecrets } from './secrets.ts'
import type { Reading } from './signature-forms.ts'

/** How much is tried, in bytes hashed with SHA-1: less than a second's worth. */
const WORK_LIMIT = 400_000_000
/** What one byte costs, next to hashing it with SHA-1. */
const COST = {
  md5: 2,
  sha1: 1,
  sha224: 1,
  sha256: 1,
  sha384: 3,
  sha512: 3,
  change: 1,
  read: 60,
  rewrite: 7,
  write: 1,
} as const

/** What was found, and what was tried for it. */
export interface SearchResult {
  /** The deviations that explain the signature, at most two and those of its form; undefined when none do. */
  readonly causes: readonly SignatureCause[] | undefined
  /** The codes of what was tried beside the form. */
  readonly tried: readonly SignatureCause['code'][]
  /** Whether every pair of deviations was tried. */
  readonly complete: boolean
}

/** How many times as long as the body its indented forms may be: numbers one a line, five levels deep, take ten. */
const MAX_GROWTH = 20

/** One guess: which digest, of what, with which key. */
interface Candidate {
  readonly digest: Digest
  readonly key: Uint8Array
  readonly bytes: Uint8Array
  readonly causes: readonly SignatureCause[]
}

/** What differs from the right way. */
type Deviation = Partial<Candidate> & Pick<Candidate, 'causes'>

/** Bytes that may have been signed instead of the body. */
interface Variant extends Deviation {
  readonly bytes: Buffer
  /** Whether a serialiser may have worked on them. */
  readonly isInner: boolean
}

/**
 * Searches for deviations of the secret, the body and the digest that make one of the readings fit.
 *
 * @param limit How much to try, in bytes hashed with SHA-1.
 */
export function search(
  bytes: Uint8Array,
  secret: string,
  readings: readonly Reading[],
  limit: number = WORK_LIMIT,
): SearchResult {
  const work = new Work(limit)
  const tried = new Set<SignatureCause['code']>()
  for (const { digest, key, bytes: signed, causes } of listCandidates(bytes, secret, work)) {
    for (const { code } of causes) tried.add(code)
    for (const reading of readings) {
      work.spend(signed.length * COST[reading.hash])
      const prefixed = reading.prefix === '' ? signed : Buffer.concat([Buffer.from(reading.prefix), signed])
      if (!reading.fits(digest.compute(reading.hash, key, prefixed))) continue
      return { causes: [...reading.causes, ...causes], tried: [...tried], complete: true }
    }
    if (work.isDone) break
  }
  return { causes: undefined, tried: [...tried], complete: !work.isDone }
}

/** The guesses, those with fewer deviations first. */
function* listCandidates(given: Uint8Array, secret: string, work: Work): Generator<Candidate> {
  const body = Buffer.from(given.buffer, given.byteOffset, given.length)
  const right: Candidate = { digest: HMAC, key: Buffer.from(secret), bytes: body, causes: [] }
  const digests = WRONG_DIGESTS.map((digest): Deviation => ({ digest, causes: [causeOf(digest.code)] }))
  const secrets = listSecrets(secret).map(({ key, code }): Deviation => ({ key, causes: [causeOf(code)] }))
  const bodies: Variant[] = []
  const seen = new Set([fingerprint(body)])

  yield right
  for (const deviation of [...digests, ...secrets]) yield { ...right, ...deviation }
  for (const variant of listVariants({ bytes: body, causes: [], isInner: true }, seen, work)) {
    bodies.push(variant)
    yield { ...right, ...variant }
  }
  // Of a large body, the work ends among these: the likely ones of each kind come first.
  const pairs = interleave<Deviation>([
    pair(digests, [...secrets, ...bodies]),
    pair(secrets, bodies),
    interleave(bodies.map((variant) => listVariants(variant, seen, work))),
  ])
  for (const deviation of pairs) yield { ...right, ...deviation }
}

/** What one more deviation makes of a body. Leaves out what was made before. */
function* listVariants(from: Variant, seen: Set<string>, work: Work): Generator<Variant> {
  for (const { code, isInner, bytes } of changeBody(from.bytes, from.isInner)) {
    work.spend(from.bytes.length * COST.change)
    if (work.isDone) return
    if (!isNew(bytes, seen)) continue
    yield { bytes, causes: [...from.causes, causeOf(code)], isInner }
  }
  if (!from.isInner) return
  for (const { bytes, names } of rewriteBody(from.bytes, work)) {
    if (!isNew(bytes, seen)) continue
    yield { bytes, causes: [...from.causes, reserialisedBy(names)], isInner: false }
  }
}

/** What serialisers make of a body. Those that write the same bytes are named together. */
function rewriteBody(body: Buffer, work: Work): Iterable<{ readonly bytes: Buffer; readonly names: string[] }> {
  const results = new Map<string, { readonly bytes: Buffer; readonly names: string[] }>()
  work.spend(body.length * COST.read)
  if (work.isDone) return []
  const text = readJsonText(body.toString())
  for (const { names, write } of text ? listRewrites(text) : []) {
    work.spend(body.length * COST.rewrite)
    if (work.isDone) break
    const limit = body.length * MAX_GROWTH
    const written = write(limit)
    work.spend((written?.length ?? limit) * COST.write)
    if (written === undefined) continue
    const bytes = Buffer.from(written)
    const known = results.get(fingerprint(bytes))
    if (known) known.names.push(...names)
    else results.set(fingerprint(bytes), { bytes, names: [...names] })
  }
  return results.values()
}

function* pair(firsts: readonly Deviation[], seconds: readonly Deviation[]): Generator<Deviation> {
  for (const first of firsts) {
    for (const second of seconds) yield { ...first, ...second, causes: [...first.causes, ...second.causes] }
  }
}

/** The first of each list, then the second of each, and so on. */
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

function isNew(bytes: Uint8Array, seen: Set<string>): boolean {
  const print = fingerprint(bytes)
  return !seen.has(print) && seen.add(print) !== undefined
}

function fingerprint(bytes: Uint8Array): string {
  return createHash('sha1').update(bytes).digest('base64')
}

/** Counts what is left to try, in bytes hashed with SHA-1. */
class Work {
  #left: number

  constructor(limit: number) {
    this.#left = limit
  }

  get isDone(): boolean {
    return this.#left < 0
  }

  spend(bytes: number): void {
    this.#left -= bytes
  }
}

/** Says briefly why signatures do not match. The work per second is limited, so that a flood of requests cannot occupy the process. */

import { explainSignature, type SignatureExplanation } from 'hookline/testing'

/**
 * Explains in a few sentences why a signature does not match. For a large body, or during a flood of requests, the sentences only name a
 * command that explains the mismatch.
 */
export type FindReason = (id: string, body: Uint8Array, signature: string | undefined) => string

const MAX_BODY_BYTES = 100_000
/** The maximum number of reasons to search for per second. */
const MAX_A_SECOND = 5
/** The maximum number of bytes to hash for one reason. Hashing them takes a few milliseconds. */
const BOUND = { maxBytes: 3_000_000 }
const MAX_LENGTH = 300

export function createFindReason(secret: string): FindReason {
  let [second, count] = [0, 0]

  function isFree(): boolean {
    const now = performance.now()
    if (now - second > 1_000) [second, count] = [now, 0]
    count += 1
    return count <= MAX_A_SECOND
  }

  return (id, body, signature) => {
    const isQuick = signature === undefined || (body.length <= MAX_BODY_BYTES && isFree())
    if (isQuick) return inShort(explainSignature(body, signature, secret, BOUND))
    return `The signature does not match. \`hookline show ${id}\` explains it.`
  }
}

/** Describes the first cause, and lists the codes of the others. */
function inShort({ verdict, message, causes: [first, ...others] }: SignatureExplanation): string {
  if (verdict !== 'explained' || first === undefined) return firstSentences(message, 1)
  return [firstSentences(first.message, 2), ...others.map(({ code }) => `Also ${code}.`)].join(' ')
}

function firstSentences(text: string, count: number): string {
  return text
    .split(/(?<=\.) /, count)
    .join(' ')
    .slice(0, MAX_LENGTH)
}

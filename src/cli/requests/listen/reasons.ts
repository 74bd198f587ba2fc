/** Says in short why signatures do not match: only of so many that requests never wait for it. */

import { createExplainer } from '../../../inspector/explainer.ts'
import { causeOf } from '../../../message/explain/causes.ts'
import type { SignatureExplanation } from '../../../message/explain/explain-signature.ts'
import { SHOWN_DIGITS } from '../../request-store.ts'

export interface Reasons {
  /** In a sentence or two; of a large body, and in a flood of requests, without the cause. Never rejects. */
  find(id: string, body: Uint8Array, signature: string | undefined): Promise<string>
  /** What is asked for afterwards has no cause. */
  close(): Promise<void>
}

/** A larger body takes more than a tenth of a second. */
const MAX_BODY_BYTES = 100_000
/** How many reasons are looked for each second. That of a small body takes a tenth of a second. */
const MAX_A_SECOND = 5
const MAX_LENGTH = 300

export function createReasons(secret: string): Reasons {
  const explainer = createExplainer(MAX_A_SECOND - 1)
  let [second, count] = [0, 0]

  function isFree(): boolean {
    const now = performance.now()
    if (now - second > 1_000) [second, count] = [now, 0]
    count += 1
    return count <= MAX_A_SECOND
  }

  return {
    async find(id, body, signature) {
      if (signature === undefined) return firstSentences(causeOf('signature_missing').message, 2)
      const isTaken = body.length <= MAX_BODY_BYTES && isFree()
      const explanation = isTaken ? await explainer.explain(body, signature, secret) : undefined
      if (explanation !== undefined) return inShort(explanation)
      return `The signature does not match. \`hookline show ${id.slice(0, SHOWN_DIGITS)}\` explains it.`
    },
    close: () => explainer.close(),
  }
}

/** What must be so and what was found, of the first cause; the codes of the others. */
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

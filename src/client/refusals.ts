/** What the answer to a batch says of refused calls. */

/** A call that was refused. */
export interface Refusal {
  /** Its place in the batch. */
  readonly index: number
  readonly code: unknown
  readonly path: unknown
}

/** The answer of a collection service. */
export interface BatchAnswer {
  /** The calls that it lists as refused, by their places. */
  readonly refused: ReadonlyMap<number, Refusal>
  /** How many calls it says it took. */
  readonly accepted: unknown
}

/**
 * Reads `{"accepted":19,"refused":[{"index":0,"code":"call_invalid","path":"event"}]}`. Another collection service may answer
 * anything else, which lists none; `unreadable` is only what begins as such an answer and is cut or broken.
 */
export function readRefusals(body: string, calls: number): BatchAnswer | 'unreadable' {
  if (!body.includes('"refused"')) return NOTHING
  try {
    const { refused, accepted } = Object(JSON.parse(body))
    return Array.isArray(refused) ? { refused: readList(refused, calls), accepted } : NOTHING
  } catch {
    return body.trimStart().startsWith('{') ? 'unreadable' : NOTHING
  }
}

const NOTHING: BatchAnswer = { refused: new Map(), accepted: undefined }

function readList(list: readonly unknown[], calls: number): ReadonlyMap<number, Refusal> {
  const refused = new Map<number, Refusal>()
  for (const item of list) {
    const { index, code, path } = Object(item)
    if (Number.isInteger(index) && index >= 0 && index < calls) refused.set(index, { index, code, path })
  }
  return refused
}

/** How many calls of a batch are neither counted as accepted nor listed as refused: a service may list only the first ones. */
export function countUnlisted({ refused, accepted }: BatchAnswer, calls: number): number {
  if (!Number.isInteger(accepted) || (accepted as number) < 0) return 0
  return Math.max(0, calls - (accepted as number) - refused.size)
}

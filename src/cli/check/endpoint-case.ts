/** A case of an endpoint: the requests that it sends, and which answers are right. */

import { USER_AGENT } from '../../message/limits.ts'
import { sign } from '../../message/signature.ts'
import type { CaseFacts } from '../cases.ts'
import type { Form } from './message.ts'

/** What all cases of a run have in common. */
export interface Base {
  /** The form of messages that the endpoint takes. */
  readonly form: Form
  readonly secret: string
  /** Static headers of every request. */
  readonly headers: Readonly<Record<string, string>>
}

/** One request. */
export interface Shot {
  readonly body: Buffer
  readonly headers: Readonly<Record<string, string>>
  /** Default: the expectation of the case. */
  readonly expects?: Expectation
  /** What the answer must not hold: the right signature of a forged body. */
  readonly secret?: string
  /** Default POST. */
  readonly method?: 'POST' | 'PUT'
}

/**
 * - `taken`: a 2xx.
 * - `refused`: a 4xx.
 * - `survived`: a 2xx or a 4xx.
 * - `answered`: any status.
 * - `not_taken`: anything but a 2xx, or no answer.
 */
export type Expectation = 'taken' | 'refused' | 'survived' | 'answered' | 'not_taken'

/** A case of an endpoint. */
export interface EndpointCase extends CaseFacts {
  readonly expectation: Expectation
  /** What is probably wrong in the endpoint, and what to do: after the sentences that say what was sent and what came. */
  readonly advice: string
  /** `exact`: refused where the bytes are changed before they are verified. */
  readonly group?: 'exact'
  /** How several requests are sent. Default: one after another, each on a connection of its own. */
  readonly how?: 'kept_alive' | 'at_once' | 'in_pieces'
  shots(base: Base): readonly Shot[]
}

/** What a case is made of: `expects` follows from the expectation. */
export interface Draft extends Pick<EndpointCase, 'id' | 'sends' | 'section' | 'advice' | 'how'> {
  readonly severity?: EndpointCase['severity']
  shots(base: Base): Shot | readonly Shot[]
}

const EXPECTS: Readonly<Record<Expectation, string>> = {
  taken: 'a 2xx within 5 s',
  refused: 'a 4xx',
  survived: 'a 2xx or a 4xx',
  answered: 'any answer within 5 s',
  not_taken: 'anything but a 2xx',
}

/** Completes a case. */
export function defineCase(expectation: Expectation, { severity = 'fail', ...draft }: Draft): EndpointCase {
  return {
    ...draft,
    expectation,
    severity,
    expects: EXPECTS[expectation],
    shots: (base) => [draft.shots(base)].flat(),
  }
}

/** Signs a body. A signature of null leaves the header out. */
export function signed(
  { secret, headers }: Base,
  text: string | Buffer,
  signature: string | null = sign(text, secret),
): Shot {
  const own = { 'Content-Type': 'application/json', 'User-Agent': USER_AGENT }
  const all = signature === null ? own : { ...own, 'X-Signature': signature }
  return { body: Buffer.from(text), headers: { ...headers, ...all } }
}

/** What is shown of a kept request: escaped, and without what could log someone in. */

import { type KeptSummary, pairsOf } from './kept.ts'
import { pathOf } from './line.ts'

/** Headers whose values are not shown. */
const HIDDEN = /authorization|cookie|token|secret|password|api-?key/i

/** Names and values. */
export function shownHeaders(headers: readonly string[]): (readonly [name: string, value: string])[] {
  return pairsOf(headers).map(([name, value]) => [name, HIDDEN.test(name) ? '(hidden)' : value])
}

/** Whether the value of a header is hidden. */
export function isHidden(name: string): boolean {
  return HIDDEN.test(name)
}

/** All but the bodies, for JSON. */
export function jsonOf({ receivedAt, target, headers, size, message, answer, ...others }: KeptSummary): object {
  return {
    ...others,
    receivedAt: new Date(receivedAt).toISOString(),
    path: pathOf(target),
    headers: shownHeaders(headers),
    bytes: size,
    ...message,
    answer: { ...answer, headers: shownHeaders(answer.headers) },
  }
}

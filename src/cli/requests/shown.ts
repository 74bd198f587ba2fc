/** What is shown of a kept request: escaped, and without what could log someone in. */

import { isSecretHeader } from '../../inbox/envelope.ts'
import { type KeptSummary, pairsOf } from './kept.ts'
import { pathOf } from './line.ts'

/** The value of a header, unless it may be a secret. */
export function shownValue(name: string, value: string): string {
  return isSecretHeader(name.toLowerCase()) ? '(hidden)' : value
}

/** Names and values. */
export function shownHeaders(headers: readonly string[]): (readonly [name: string, value: string])[] {
  return pairsOf(headers).map(([name, value]) => [name, shownValue(name, value)])
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

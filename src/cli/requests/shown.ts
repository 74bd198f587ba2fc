/** What is shown of a kept request: escaped, and without what could log someone in. */

import { isSecretHeader } from '../../inbox/envelope.ts'
import { escaped, paint } from '../terminal.ts'
import { type KeptSummary, pairsOf, SHOWN_DIGITS } from './kept.ts'

/** A longer path, event or user is cut, so that the rest can be seen. */
const LONGEST = 40

/** A request on one line. */
export function lineOf(request: KeptSummary, withDate = false): string {
  const { id, receivedAt, method, target, message, size, answer } = request
  const { status, durationMs } = answer
  const isFine = status !== undefined && status < 300
  const columns = [
    timeOf(receivedAt, withDate),
    id.slice(0, SHOWN_DIGITS),
    cell(`${method} ${pathOf(target)}`, 14),
    cell(message.type, 8),
    cell(message.name, 15),
    cell(message.user, 8),
    `${size} B`.padStart(8),
    paint(isFine ? 'green' : 'red', String(status ?? '---')),
    `${Math.round(durationMs)} ms`.padStart(7),
    noteOf(request),
  ]
  return columns.join('  ')
}

/** The local time: `14:03:22`, behind `2026-11-22` where asked. */
export function timeOf(ms: number, withDate = true): string {
  const [date, time] = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().split('T')
  return withDate ? `${date} ${time?.slice(0, 8)}` : String(time?.slice(0, 8))
}

/** The path of a request; of a query only that it is there, because it may hold a token. */
export function pathOf(target: string): string {
  const end = target.indexOf('?')
  return end === -1 ? target : `${target.slice(0, end)}?…`
}

/** Whether the signature is right, and why not. */
export function verificationOf({ verification, reason }: KeptSummary): string {
  if (verification === 'verified') return paint('green', 'verified')
  if (verification === 'unchecked') return 'not verified'
  return paint('red', escaped(`not verified: ${reason ?? 'The signature does not match.'}`))
}

function noteOf(request: KeptSummary): string {
  const { answer, message } = request
  const fault = message.fault && `No message: ${message.fault}`
  return [verificationOf(request), escaped([answer.note, fault].filter(Boolean).join(' '))].filter(Boolean).join('  ')
}

function cell(text = '', width: number): string {
  const chars = [...text.slice(0, 2 * LONGEST)]
  return escaped(chars.length > LONGEST ? `${chars.slice(0, LONGEST - 1).join('')}…` : text).padEnd(width)
}

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

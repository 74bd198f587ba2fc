/** `hookline list`, and the functions that format stored requests as lines. The lines are escaped and contain no credentials. */

import type { Command } from 'commander'
import { MESSAGE_TYPES } from 'hookline'
import { shownHeader, shownUrl } from '../../../../src/internals.ts'
import { choice, whole } from '../arguments.ts'
import { addStoreOption, MAX_REQUESTS, openStore } from '../request-store.ts'
import { escaped, paint, print, printJson } from '../terminal.ts'
import { type KeptSummary, pairsOf, SHOWN_DIGITS } from './kept-request.ts'

interface Options {
  readonly store: string
  readonly type?: string
  readonly limit: number
  readonly json?: boolean
}

export function define(command: Command): void {
  addStoreOption(command)
    .addOption(choice('--type <type>', 'list only messages of this type', MESSAGE_TYPES))
    .option('--limit <number>', 'the maximum number of requests, newest last', whole(1, MAX_REQUESTS), 50)
    .option('--json', 'print one JSON object per line, without the bodies')
    .action(list)
    .addHelpText('after', HELP)
}

const HELP = `
Examples:
  hookline list
      Prints the last 50 requests.
  hookline list --type track --limit 500 --json
      Prints the last 500 requests of one type as JSON, for another program.`

function list({ store: path, type, limit, json = false }: Options): void {
  const store = openStore(path)
  for (const summary of store.list(limit, type)) {
    if (json) printJson(jsonOf(summary))
    else print(lineOf(summary, true))
  }
  store.close()
}

function jsonOf(request: KeptSummary): object {
  const { receivedAt, target, headers, size, message, answer, ...others } = request
  return {
    ...others,
    receivedAt: new Date(receivedAt).toISOString(),
    path: shownUrl(target),
    headers: shownHeaders(headers, request),
    bytes: size,
    ...message,
    answer: { ...answer, headers: shownHeaders(answer.headers, request) },
  }
}

export function lineOf(request: KeptSummary, withDate = false): string {
  const { id, receivedAt, method, target, message, size, answer } = request
  const { status, durationMs, note } = answer
  const isFine = status !== undefined && status < 300
  const fault = message.fault && `Not a message: ${message.fault}`
  const columns = [
    timeOf(receivedAt, withDate),
    id.slice(0, SHOWN_DIGITS),
    cell(`${method} ${shownUrl(target)}`, 14),
    cell(message.type, 8),
    cell(message.name, 15),
    cell(message.user, 8),
    `${size} B`.padStart(8),
    paint(isFine ? 'green' : 'red', String(status ?? '---')),
    `${Math.round(durationMs)} ms`.padStart(7),
    verificationOf(request),
    ...(note || fault ? [escaped([note, fault].filter(Boolean).join(' '))] : []),
  ]
  return columns.join('  ')
}

/** The maximum number of characters in a column. Longer texts are cut. */
const MAX_CELL_LENGTH = 40

function cell(text = '', width: number): string {
  const chars = [...text.slice(0, 2 * MAX_CELL_LENGTH)]
  const shown = chars.length > MAX_CELL_LENGTH ? `${chars.slice(0, MAX_CELL_LENGTH - 1).join('')}…` : text
  return escaped(shown).padEnd(width)
}

/** Formats a time in the local time zone: `14:03:22`, or `2026-11-22 14:03:22`. */
export function timeOf(ms: number, withDate = true): string {
  const [date, time] = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000).toISOString().split('T')
  return withDate ? `${date} ${time?.slice(0, 8)}` : String(time?.slice(0, 8))
}

export function verificationOf({ verification, reason }: KeptSummary): string {
  if (verification === 'verified') return paint('green', 'verified')
  if (verification === 'unchecked') return 'not verified'
  return paint('red', escaped(`not verified: ${reason ?? 'The signature does not match.'}`))
}

export function shownValue(name: string, value: string, isVerified = false): string {
  return shownHeader(name, value, isVerified) ?? '(hidden)'
}

export function shownHeaders(
  headers: readonly string[],
  { verification }: Pick<KeptSummary, 'verification'>,
): (readonly [name: string, value: string])[] {
  return pairsOf(headers).map(([name, value]) => [name, shownValue(name, value, verification === 'verified')])
}

/** What the demo prints: the lines of its table, a line for each later message, and a command for a shell. */

import { type Expectation, findFaults, type Outcome, STATIONS, type Station } from './expectations.ts'

const NAME_WIDTH = 18
const TIME_WIDTH = 13

/** What each station does with a message. */
const DOES: Readonly<Record<Station, string>> = {
  client: 'recorded',
  collector: 'accepted',
  destination: 'delivered',
  receiver: 'handled',
}

/** The head of the table, two lines. */
export const head: string = [
  `  ${toColumns('', STATIONS)}`,
  `  ${toColumns('message', Object.values(DOES))}  outcome`,
].join('\n')

/** One line of the table; a wrong outcome says what is wrong with it. */
export function toLine(expected: Expectation, outcome: Outcome): string {
  const times = STATIONS.map((station) => toTime(outcome.passed.get(station)))
  const line = `${toColumns(expected.name, times)}  ${outcome.saw}`
  const faults = findFaults(expected, outcome)
  return escaped(faults.length === 0 ? `✓ ${line}` : `✗ ${line} (${faults.join('; ')})`)
}

/** One line for a message that passes a station, with the time of day. */
export function toPassing(station: Station, text: string): string {
  return escaped(`✓ ${timeOfDay()}  ${station.padEnd(TIME_WIDTH)}${DOES[station].padEnd(TIME_WIDTH)}${text}`)
}

/** One line for what a station refused, or could not do. */
export function toFailure(station: Station, text: string): string {
  return escaped(`✗ ${timeOfDay()}  ${station.padEnd(TIME_WIDTH)}${text}`)
}

/** What a sender wrote must not move the cursor of a terminal. */
function escaped(line: string): string {
  return line.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (char) => `\\u{${char.codePointAt(0)?.toString(16)}}`)
}

/** The call as a command for a shell, in single quotes throughout. */
export function toCurl(url: string, writeKey: string, call: object): string {
  return [
    `curl -i ${quote(url)}`,
    `-u ${quote(`${writeKey}:`)}`,
    `-H ${quote('content-type: application/json')}`,
    `--data-raw ${quote(JSON.stringify(call))}`,
  ].join(' \\\n  ')
}

function toColumns(name: string, values: readonly string[]): string {
  return name.padEnd(NAME_WIDTH) + values.map((value) => value.padStart(TIME_WIDTH)).join('')
}

function toTime(ms: number | undefined): string {
  return ms === undefined ? '–' : `${Math.round(ms)} ms`
}

function timeOfDay(): string {
  return new Date().toISOString().slice(11, 23)
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

/** The results of a check of an endpoint or a sender: printed as they come, counted, and kept for a report of JUnit. */

import { openSync, writeSync } from 'node:fs'
import type { Command } from 'commander'
import type { CaseFacts, Result, Verdict } from './cases.ts'
import { escaped, note, paint, print, printJson, UsageError } from './terminal.ts'

/** The options of a report. */
export interface ReportOptions {
  readonly json?: boolean
  readonly junit?: string
  readonly strict?: boolean
}

/** Takes the results of one run. */
export interface Report {
  /** Prints a result. */
  add(result: Result): void
  /**
   * Prints how many there were of each, writes the file, and sets the exit code: 1 when one failed.
   *
   * @param isInterrupted Whether the user ended the run: then it is 1 as well.
   */
  finish(isInterrupted: boolean): void
}

/** The document that sections are of. */
const SPECIFICATION = 'Outbound event delivery'

const STYLES = { pass: 'green', fail: 'red', warn: 'yellow', skip: 'dim' } as const

/** Adds `--json`, `--junit` and `--strict`. */
export function addReportOptions(command: Command): Command {
  return command
    .option('--json', 'print one JSON object a line')
    .option('--junit <file>', 'also write the results as XML, as JUnit does')
    .option('--strict', 'let a warning fail, and a case that was skipped')
}

/**
 * Opens a report.
 *
 * @param cases Of the run.
 * @throws UsageError for a file that cannot be written.
 */
export function openReport(
  { json, junit, strict = false }: ReportOptions,
  cases: readonly Pick<CaseFacts, 'id'>[],
): Report {
  const file = junit === undefined ? undefined : openFile(junit)
  const width = Math.max(...cases.map(({ id }) => id.length))
  const results: Result[] = []

  return {
    add(found) {
      const result = { ...found, sentence: escaped(found.sentence), section: `${SPECIFICATION}, ${found.section}` }
      results.push(result)
      if (json) return printJson(result)
      const { id, result: verdict, sentence } = result
      print(`${paint(STYLES[verdict], verdict)}  ${id.padEnd(width)}  ${sentence} (${found.section})`)
    },
    finish(isInterrupted) {
      const count = (verdict: Verdict): number => results.filter(({ result }) => result === verdict).length
      const [failed, warned, skipped] = [count('fail'), count('warn'), count('skip')]
      note(`${count('pass')} passed, ${failed} failed, ${warned} warned, ${skipped} skipped.`)
      if (file !== undefined) writeSync(file, writeJunit(results, strict))
      const isBad = isInterrupted || failed > 0 || (strict && warned + skipped > 0)
      process.exitCode = isBad ? 1 : 0
    },
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, 'w')
  } catch (error) {
    throw new UsageError(`--junit: ${path} cannot be written: ${(error as Error).message}.`)
  }
}

/** Writes one test suite. With `isStrict`, warnings and skipped cases are failures. */
function writeJunit(results: readonly Result[], isStrict: boolean): string {
  const verdictOf = ({ result }: Result): string => (isStrict && result !== 'pass' ? 'fail' : result)
  const count = (verdict: string): number => results.filter((result) => verdictOf(result) === verdict).length
  const time = seconds(results.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0))
  const totals = `tests="${results.length}" failures="${count('fail')}" errors="0" skipped="${count('skip')}" time="${time}"`

  const cases = results.map((result) => {
    const { id, sentence, section, durationMs = 0 } = result
    const attributes = `classname="hookline.check" name="${escapeXml(id)}" time="${seconds(durationMs)}"`
    return `    <testcase ${attributes}>${inside(verdictOf(result), escapeXml(sentence), escapeXml(section))}</testcase>`
  })
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="hookline check" ${totals}>`,
    `  <testsuite name="hookline check" ${totals}>`,
    ...cases,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function inside(verdict: string, sentence: string, section: string): string {
  if (verdict === 'fail') return `<failure message="${sentence}">${section}</failure>`
  if (verdict === 'skip') return `<skipped message="${sentence}"/>`
  return `<system-out>${verdict}: ${sentence} (${section})</system-out>`
}

function seconds(durationMs: number): string {
  return (durationMs / 1000).toFixed(3)
}

/** XML 1.0 has no way to write the control characters, surrogates and noncharacters that it forbids: they are dropped. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"'\t\n\r]/g, (char) => `&#${char.charCodeAt(0)};`)
}

/** Selects the cases of a check, and reports the results: as lines, as JSON, and as a JUnit file. */

import type { Command } from 'commander'
import { nearest } from '../../../src/internals.ts'
import { openOutput } from './output-file.ts'
import { counted, escaped, note, paint, print, printJson, UsageError } from './terminal.ts'

export interface CaseFacts {
  /** The id, in kebab-case. It never changes, because users select cases by it. */
  readonly id: string
  readonly sends: string
  readonly expects: string
  /** The section and rule of "Outbound event delivery" that require the answer, such as `Authentication 2`. */
  readonly section: string
  readonly severity: 'fail' | 'warn'
}

export interface Result {
  readonly id: string
  readonly result: Verdict
  /** Says what was sent or expected, what was received, what the consequence is, and what to do. May quote untrusted text. */
  readonly sentence: string
  readonly section?: string
  readonly durationMs?: number
  /** The end of the sentence: the consequence, and what to do. Results with the same cause form a group. Default: the whole sentence. */
  readonly cause?: string
  /** The beginning of the body of the answer. */
  readonly answer?: string
}

/** The outcome of a case. With `--strict`, a run succeeds only when all cases pass. */
type Verdict = keyof typeof STYLES

const SPECIFICATION = 'https://hookline.github.io/hookline/specification'

const STYLES = { pass: 'green', fail: 'red', warn: 'yellow', skip: 'dim' } as const

export interface ReportOptions {
  readonly only?: readonly string[]
  readonly list?: boolean
  readonly json?: boolean
  readonly junit?: string
  readonly strict?: boolean
}

export function addReportOptions(command: Command): Command {
  return command
    .option('--only <ids>', 'run only these cases: ids separated by commas', addIds)
    .option('--list', 'print the cases and send nothing')
    .option('--json', 'print one JSON object per line')
    .option('--junit <file>', 'also write the results to a JUnit XML file')
    .option('--strict', 'also fail for warnings and skipped cases')
}

function addIds(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(',').map((id) => id.trim())]
}

/**
 * Returns the selected cases in their original order.
 *
 * @throws UsageError for an id that no case has.
 */
export function select<Case extends CaseFacts>(cases: readonly Case[], { only }: ReportOptions): readonly Case[] {
  if (only === undefined) return cases
  const ids = cases.map(({ id }) => id)
  for (const id of only) {
    if (ids.includes(id)) continue
    const near = nearest(id, ids) ?? ids.find((each) => id.length > 2 && each.includes(id.toLowerCase()))
    throw new UsageError(
      `--only: no case has the id '${id}'. ${near === undefined ? '' : `Did you mean ${near}? `}--list prints all ids.`,
    )
  }
  return cases.filter(({ id }) => only.includes(id))
}

export function list(cases: readonly CaseFacts[], { json }: ReportOptions): void {
  const width = Math.max(...cases.map(({ id }) => id.length))
  for (const { id, sends, expects, section, severity } of cases) {
    if (json) printJson({ id, sends, expects, section, severity })
    else print(`${severity}  ${id.padEnd(width)}  ${sends}: ${expects} (${section})`)
  }
}

export interface Report {
  add(result: Result): void
  /**
   * Prints the counts, writes the JUnit file, and sets the exit code. The code is 1 if a case failed, if the user stopped the run, or, with
   * `--strict`, if a case did not pass.
   */
  finish(isInterrupted: boolean): void
}

/** @throws UsageError for a file that cannot be written. */
export function openReport(
  { json, junit, strict = false }: ReportOptions,
  cases: readonly Pick<CaseFacts, 'id'>[],
): Report {
  const file = junit === undefined ? undefined : openJunit(junit, 'hookline check')
  const width = Math.max(...cases.map(({ id }) => id.length))
  const results: Result[] = []
  const isTerminal = process.stdout.isTTY && !json

  /** Repeats the failures at the end. Prints each cause on a line, followed by its cases and one of the answers. */
  function printFailures(): void {
    const failed = results.filter(({ result }) => result === 'fail')
    const groups = Map.groupBy(failed, ({ cause, sentence }) => cause ?? sentence)
    if (!isTerminal && groups.size === failed.length) return
    for (const [cause, found] of groups) {
      const answer = found.find((each) => each.answer)?.answer
      print(`\n${paint('red', 'fail')}  ${cause}`)
      print(`      ${counted(found.length, 'case')}: ${found.map(({ id }) => id).join(', ')}`)
      if (answer !== undefined) print(`      answered: ${answer}`)
    }
  }

  return {
    add(found) {
      const section = `Outbound event delivery, ${found.section}`
      const { cause, answer, ...shown } = { ...found, sentence: escaped(found.sentence), section }
      const isRepeated = results.some(({ sentence }) => sentence === shown.sentence)
      results.push({ ...shown, ...(cause && { cause: escaped(cause) }), ...(answer && { answer: escaped(answer) }) })
      if (json) return printJson(shown)
      const { id, result: verdict, sentence } = shown
      if (verdict === 'pass' || verdict === 'skip' || isRepeated) return // The counts at the end include such cases.
      printResult({ id: id.padEnd(width), result: verdict, sentence: `${sentence} (${found.section})` })
    },
    finish(isInterrupted) {
      const count = (verdict: Verdict): number => results.filter(({ result }) => result === verdict).length
      const [failed, warned, skipped] = [count('fail'), count('warn'), count('skip')]
      if (!json) printFailures()
      const interrupted = isInterrupted
        ? `Interrupted: ${results.length} of ${counted(cases.length, 'case')} ran. `
        : ''
      if (failed + warned > 0) note(`The sections are those of the specification: ${SPECIFICATION}`)
      note(`${interrupted}${count('pass')} passed, ${failed} failed, ${warned} warned, ${skipped} skipped.`)
      file?.write(results, strict)
      const isBad = isInterrupted || failed > 0 || (strict && warned + skipped > 0)
      process.exitCode = isBad ? 1 : 0
    },
  }
}

/** @param result A result whose texts are already escaped. */
export function printResult({ id, result, sentence }: Result): void {
  print(`${paint(STYLES[result], result)}  ${id}  ${sentence}`)
}

/**
 * Opens a file for results in JUnit format.
 *
 * @param suite The name of the command.
 * @throws UsageError for a file that cannot be written.
 */
export function openJunit(path: string, suite: string) {
  const write = openOutput('--junit', path, 0o600)
  return { write: (results: readonly Result[], isStrict: boolean) => write(writeJunit(results, suite, isStrict)) }
}

function writeJunit(results: readonly Result[], suite: string, isStrict: boolean): string {
  const judged = results.map((result) => {
    return { ...result, verdict: isStrict && result.result !== 'pass' ? 'fail' : result.result }
  })
  const count = (wanted: string): number => judged.filter(({ verdict }) => verdict === wanted).length
  const time = seconds(results.reduce((sum, { durationMs = 0 }) => sum + durationMs, 0))
  const totals = `tests="${results.length}" failures="${count('fail')}" errors="0" skipped="${count('skip')}" time="${time}"`
  const cases = judged.map(({ id, verdict, durationMs = 0, ...texts }) => {
    const [sentence, section] = [escapeXml(texts.sentence), escapeXml(texts.section ?? '')]
    const outcome =
      verdict === 'fail'
        ? `<failure message="${sentence}">${section}</failure>`
        : verdict === 'skip'
          ? `<skipped message="${sentence}"/>`
          : `<system-out>${verdict}: ${sentence}${section && ` (${section})`}</system-out>`
    const facts = `classname="${suite.replace(' ', '.')}" name="${escapeXml(id)}" time="${seconds(durationMs)}"`
    return `    <testcase ${facts}>${outcome}</testcase>`
  })
  return `<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="${suite}" ${totals}>
  <testsuite name="${suite}" ${totals}>
${cases.join('\n')}
  </testsuite>
</testsuites>
`
}

function seconds(durationMs: number): string {
  return (durationMs / 1000).toFixed(3)
}

/** Escapes text for XML. Drops characters that XML 1.0 forbids even when escaped: control characters, surrogates and noncharacters. */
function escapeXml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '')
    .replace(/[&<>"'\t\n\r]/g, (char) => `&#${char.charCodeAt(0)};`)
}

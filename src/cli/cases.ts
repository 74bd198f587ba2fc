/** What the cases of a check are, of an endpoint or of a sender, what they find, and which of them run. */

import type { Command } from 'commander'
import { nearest } from '../options/checks.ts'
import { print, printJson, UsageError } from './terminal.ts'

/** What is known of a case before it runs. The table of the documentation has a row for each. */
export interface CaseFacts {
  /** In kebab-case. It never changes: users select by it. */
  readonly id: string
  /** What is sent to an endpoint, or done to a sender. */
  readonly sends: string
  /** What must come back. */
  readonly expects: string
  /** The section of "Outbound event delivery" that it follows from, and its rule: `Authentication 2`. */
  readonly section: string
  /** The result when something else comes back. */
  readonly severity: 'fail' | 'warn'
}

/** What a case found. */
export interface Result {
  readonly id: string
  readonly result: Verdict
  /** What was sent or expected, what came, what that means and what to do. It may quote strangers. */
  readonly sentence: string
  readonly section: string
  readonly durationMs?: number
}

/** With `--strict`, a run is good only when all pass. */
export type Verdict = 'pass' | 'fail' | 'warn' | 'skip'

/** The options of a selection. */
export interface SelectionOptions {
  readonly only?: readonly string[]
  readonly list?: boolean
  readonly json?: boolean
}

/** Adds `--only` and `--list`. */
export function addSelectionOptions(command: Command): Command {
  return command
    .option('--only <ids>', 'run these cases only: ids, with commas between them', addIds)
    .option('--list', 'print the cases and send nothing')
}

function addIds(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, ...text.split(',').map((id) => id.trim())]
}

/**
 * Selects cases, in their own order.
 *
 * @throws UsageError for an id that no case has.
 */
export function select<Case extends CaseFacts>(cases: readonly Case[], { only }: SelectionOptions): readonly Case[] {
  if (only === undefined) return cases
  const ids = cases.map(({ id }) => id)
  for (const id of only) {
    if (ids.includes(id)) continue
    const near = nearest(id, ids) ?? ids.find((each) => id.length > 2 && each.includes(id.toLowerCase()))
    throw new UsageError(
      `--only: no case has the id '${id}'. ${near === undefined ? '' : `Did you mean ${near}? `}--list prints all.`,
    )
  }
  return cases.filter(({ id }) => only.includes(id))
}

/** Prints cases: a line each. */
export function list(cases: readonly CaseFacts[], { json }: SelectionOptions): void {
  const width = Math.max(...cases.map(({ id }) => id.length))
  for (const { id, sends, expects, section, severity } of cases) {
    if (json) printJson({ id, sends, expects, section, severity })
    else print(`${severity}  ${id.padEnd(width)}  ${sends}: ${expects} (${section})`)
  }
}

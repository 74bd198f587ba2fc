/** `hookline list`: the requests that `hookline listen` has kept. */

import type { Command } from 'commander'
import { MESSAGE_TYPES } from '../../message/type-table.ts'
import { addExamples, choice, whole } from '../arguments.ts'
import { print, printJson } from '../terminal.ts'
import { jsonOf, lineOf } from './shown.ts'
import { addStoreOption, MOST_REQUESTS, openStore } from './store.ts'

interface Options {
  readonly store: string
  readonly type?: string
  readonly limit: number
  readonly json?: boolean
}

/** Declares the subcommand. */
export function define(command: Command): void {
  addStoreOption(command)
    .addOption(choice('--type <type>', 'only messages of this type', MESSAGE_TYPES))
    .option('--limit <number>', 'how many, the newest last', whole(1, MOST_REQUESTS), 50)
    .option('--json', 'print one JSON object a line: all that is kept but the bodies')
    .action(list)
  addExamples(command, [
    ['hookline list', 'Prints the last 50 requests.'],
    ['hookline list --type track --limit 500 --json', 'Prints the last 500 of one type, for another program.'],
  ])
}

function list({ store: path, type, limit, json = false }: Options): void {
  const store = openStore(path)
  for (const summary of store.list(limit, type)) {
    if (json) printJson(jsonOf(summary))
    else print(lineOf(summary, true))
  }
  store.close()
}

/** Runs the command `hookline`. Loads only the subcommand that the arguments name. */

import { Command, CommanderError } from 'commander'
import manifest from '../../../package.json' with { type: 'json' }
import { nearest } from '../../../src/internals.ts'
import { escaped, fail, requireNode } from './terminal.ts'

export async function runCommand(given: readonly string[]): Promise<void> {
  // `help NAME` would print the help of a subcommand that is not loaded yet. `NAME --help` loads it first.
  const args = given[0] === 'help' && given.length > 1 ? [...given.slice(1), '--help'] : given
  try {
    requireNode(manifest.engines.node.replace('>=', ''))
    await createProgram(args).parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) fail(error)
    else process.exitCode = error.exitCode === 0 ? 0 : 2 // Commander has already printed the error.
  }
}

interface Subcommand {
  define(command: Command): void
}

const SUBCOMMANDS: Readonly<Record<string, readonly [summary: string, load: () => Promise<Subcommand>]>> = {
  check: ['test an endpoint written in any language', () => import('./check/index.ts')],
  init: ['write a receiver and its test into this folder', () => import('./init/index.ts')],
  demo: ['run every part of Hookline on this machine, with a page that shows them', () => import('./demo.ts')],
  types: ['write schemas from a tracking plan or messages, or compare the two', () => import('./types/index.ts')],
  verify: ['check a signature, and explain why it does not match', () => import('./verify.ts')],
  queue: [
    'show a queue and its history, replay messages, redrive or drop dead letters',
    () => import('./queue/index.ts'),
  ],
  send: ['send messages to an endpoint', () => import('./send/index.ts')],
  listen: ['receive requests, and show, store, forward or refuse them', () => import('./requests/listen/index.ts')],
  list: ['list the requests that `listen` has stored', () => import('./requests/list.ts')],
  show: ['show one stored request', () => import('./requests/show.ts')],
  replay: ['send stored requests again', () => import('./requests/replay.ts')],
}

function createProgram(args: readonly string[]): Command {
  const program = new Command('hookline')
    .description('Receive, check and send the event webhooks of a customer-data platform.')
    .version(manifest.version)
    .enablePositionalOptions()
    .exitOverride()
    .configureOutput({ outputError: (text, write) => write(`${withoutValues(text)}${nearMiss(text, args)}\n`) })
    .showHelpAfterError('Run the command with --help to see its options.')
    .hook('preSubcommand', async (_program, command) => {
      const [, load] = SUBCOMMANDS[command.name()] ?? []
      ;(await load?.())?.define(command)
    })
  for (const [name, [summary]] of Object.entries(SUBCOMMANDS)) program.command(name).description(summary)
  return program
}

/** Removes the values that an error from Commander quotes, because a value may be secret, such as that of a misspelt `--secret`. */
function withoutValues(text: string): string {
  const line = text.trimEnd().split('\n').map(escaped).join(' ')
  return line
    .replace(/(unknown option '[^=']*)=.*'/, "$1'")
    .replace(/(--header <header>' argument) '.*' is invalid/, '$1 is invalid')
    .replace(/(argument|value) '.*[@?:].*' is invalid/, '$1 is invalid')
    .replace(/(but got \d+): .*/, '$1.')
}

function nearMiss(text: string, args: readonly string[]): string {
  const [, required = ''] = /required option '(--[\w-]+)/.exec(text) ?? []
  const passed = args.map((arg) => arg.split('=')[0] ?? '')
  const near = passed.find((name) => name.startsWith('--') && nearest(name, [required]) === required)
  return near === undefined ? '' : ` (Got ${escaped(near)}. Did you mean ${required}?)`
}

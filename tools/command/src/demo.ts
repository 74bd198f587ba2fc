/** `hookline demo`: runs every part of Hookline on this machine, and the page that shows them. */

import type { Command } from 'commander'
import { whole } from './arguments.ts'

interface Options {
  readonly port?: number
  readonly data?: string
  readonly once?: boolean
}

export function define(command: Command): void {
  command
    .option(
      '--port <number>',
      'the port, on this machine only; 0 for a free one. Default: PORT, or 3000',
      whole(0, 65_535),
    )
    .option('--data <folder>', 'the folder of the messages, which survive a kill. Default: DATA, or demo-data')
    .option('--once', 'exit when each message has arrived; exit code 1 if one has not')
    .action(demo)
    .addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 each message came through, 1 one did not, or the port is taken.

Examples:
  hookline demo
      Runs a client, a collector, two destinations and a receiver, and prints the URL of their page. Ctrl-C ends.
  hookline demo --once --port 0
      Sends ten messages through them, and ends.`

/** Runs the example unchanged. It reads these variables. */
async function demo({ port, data, once = false }: Options): Promise<void> {
  if (port !== undefined) process.env.PORT = String(port)
  if (data !== undefined) process.env.DATA = data
  process.argv = [...process.argv.slice(0, 2), ...(once ? ['--once'] : [])]
  const example = import.meta.url.endsWith('.ts') ? '../../../examples/start.ts' : './demo.js'
  await import(new URL(example, import.meta.url).href)
}

/** `hookline demo`: runs every part of Hookline on this machine, and serves a page that shows them. */

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
    .option(
      '--data <folder>',
      'the folder in which messages are stored, so that they survive a crash. Default: DATA, or demo-data',
    )
    .option('--once', 'send ten messages, then exit; exit code 1 if one did not arrive')
    .action(demo)
    .addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 every message arrived, 1 a message did not arrive, or the port is in use.

Examples:
  hookline demo
      Runs a client, a collector, two destinations and a receiver, and prints the URL of their page. Ctrl-C stops them.
  hookline demo --once --port 0
      Sends ten messages through all of them, then exits.`

/** Runs the example unchanged. The example reads its settings from environment variables and arguments. */
async function demo({ port, data, once = false }: Options): Promise<void> {
  if (port !== undefined) process.env.PORT = String(port)
  if (data !== undefined) process.env.DATA = data
  process.argv = [...process.argv.slice(0, 2), ...(once ? ['--once'] : [])]
  const example = import.meta.url.endsWith('.ts') ? '../../../examples/start.ts' : './demo.js'
  await import(new URL(example, import.meta.url).href)
}

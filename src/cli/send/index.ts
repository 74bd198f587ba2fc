/** `hookline send`: sends messages to an endpoint, signed as the destination signs them. */

import type { Command } from 'commander'
import { MESSAGE_TYPES } from '../../message/type-table.ts'
import { TAMPERINGS, type Tampering } from '../../sender/tamper.ts'
import {
  addExamples,
  address,
  addSecretOptions,
  choice,
  confirmRemote,
  findSecret,
  requireSecret,
  type SecretOptions,
  whole,
} from '../arguments.ts'
import { createPoster } from '../exchange.ts'
import { addHeaderOption, type Headers } from '../headers.ts'
import { interruption } from '../terminal.ts'
import { postAll } from './post-all.ts'
import { addEdit, type Edit } from './prepare.ts'
import { createReport } from './report.ts'
import { openSource } from './source.ts'

interface Options extends SecretOptions {
  readonly to: URL
  readonly set?: readonly Edit[]
  readonly header?: Headers
  readonly tamper?: Tampering
  readonly count: number
  readonly rate?: number
  readonly concurrency: number
  readonly json?: boolean
  readonly yes?: boolean
}

/** Declares the subcommand. */
export function define(command: Command): void {
  command
    .argument('<source>', `a type (${MESSAGE_TYPES.join(', ')}), a file, or - for messages from stdin, one a line`)
    .requiredOption('--to <url>', 'the endpoint', address)
    .option('--set <field=value>', 'change a field, as properties.total=12; repeatable', addEdit)
    .addOption(choice('--tamper <way>', 'send it incorrectly', TAMPERINGS))
    .option('--count <n>', 'send each message so often, with ids of its own', whole(1, 1_000_000_000), 1)
    .option('--rate <n>', 'send at most so many in a second', whole(1, 100_000))
    .option('--concurrency <n>', 'send at most so many at a time', whole(1, 1_000), 1)
    .option('--json', 'print one JSON object an attempt')
    .option('--yes', 'send to another machine without asking')
    .action(send)
  addHeaderOption(command)
  addSecretOptions(command)
  command.addHelpText('after', '\nExit codes: 0 every message was taken, 1 one was not, 2 wrong usage.')
  addExamples(command, [
    [
      'hookline send track --set properties.total=12 --to http://localhost:3000/webhooks',
      'Sends a track message, signed with the secret of HOOKLINE_SECRET.',
    ],
    [
      'hookline send message.json --tamper bad-signature --to http://localhost:3000/webhooks --secret-file secret.txt',
      'Sends the exact bytes of a file with a wrong signature. The endpoint should refuse it.',
    ],
    [
      'hookline send - --rate 50 --concurrency 8 --to http://localhost:3000/webhooks < messages.ndjson',
      'Sends each line of a file, 50 in a second.',
    ],
  ])
}

async function send(name: string, options: Options): Promise<void> {
  const { to, set: edits = [], header: headers = {}, tamper: tampering, count, rate, concurrency } = options
  const secret = tampering === 'no-signature' ? findSecret(options) : requireSecret(options)
  const source = await openSource(name, { count, edits })
  await confirmRemote(to, source.what, options.yes)
  const signal = interruption()
  const poster = createPoster(to, concurrency)
  const report = createReport(options.json ?? false)
  const settings = { secret, headers, tampering, rate, concurrency, signal }
  try {
    const givenUp = await postAll(source.items(signal), poster, settings, report.add)
    if (!report.end(givenUp, signal.aborted)) process.exitCode = 1
  } finally {
    await poster.close()
  }
}

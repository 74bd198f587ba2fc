/** `hookline check --sender`: judges a sender in any language by what arrives from it. */

import type { Command } from 'commander'
import { addSecretOptions, requireSecret, type SecretOptions, whole } from '../arguments.ts'
import { addReportOptions, list, openReport, type ReportOptions, select } from '../report.ts'
import { interruption, UsageError } from '../terminal.ts'
import { SELF_SIGNED, SENDER_CASES } from './cases.ts'
import { runCases, runHandshake } from './run.ts'

interface Options extends SecretOptions, ReportOptions {
  readonly host: string
  readonly port: number
  readonly tls?: boolean
  readonly wait: number
}

export function define(command: Command): void {
  command
    .summary('judge a sender in any language')
    .requiredOption('--sender', 'judge a sender, in place of an endpoint')
    .option('--port <n>', 'where to listen; 0 takes any free port', whole(0, 65_535), 0)
    .option('--host <address>', 'where to listen, when the sender runs on another machine', '127.0.0.1')
    .option('--wait <seconds>', 'how long to wait for a message or a retry', whole(1, 4 * 60 * 60), 300)
    .option('--tls', 'listen on https with a self-signed certificate, and expect that nothing is sent')
    .action(check)
  addSecretOptions(addReportOptions(command)).addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 nothing failed, 1 a case failed, 2 wrong usage, or nothing came.

Examples:
  hookline check --sender --port 9000
      Says how many messages to send, and judges them, with the secret of HOOKLINE_SECRET.
  hookline check --sender --wait 900 --secret-file secret.txt
      For a sender whose first retry comes after up to 15 minutes.
  hookline check --sender --tls
      Judges whether the sender refuses a self-signed certificate.`

async function check(options: Options): Promise<void> {
  const { host, port, wait, tls = false } = options
  const chosen = select([...SENDER_CASES, SELF_SIGNED], options)
  if (options.list) return list(chosen, options)
  const cases = chosen.filter((each) => (each === SELF_SIGNED) === tls)
  if (cases.length === 0) {
    throw new UsageError(`With --tls, the case ${SELF_SIGNED.id} runs alone; without it, the others.`)
  }
  const secret = tls ? '' : await requireSecret(options)
  const report = openReport(options, cases)
  const settings = { host, port, waitMs: wait * 1_000, signal: interruption() }
  if (tls) {
    const [result, sentence] = await runHandshake(settings)
    report.add({ id: SELF_SIGNED.id, section: SELF_SIGNED.section, result, sentence })
  } else {
    const senderCases = SENDER_CASES.filter((each) => cases.includes(each))
    for (const result of await runCases(senderCases, secret, settings)) report.add(result)
  }
  report.finish(settings.signal.aborted)
}

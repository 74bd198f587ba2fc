/** `hookline check`: judges an endpoint, in any language, by its answers. */

import type { Command } from 'commander'
import { createPoster } from '../../../../src/internals.ts'
import {
  addFormOptions,
  addHeaderOption,
  address,
  addSecretOptions,
  confirmRemote,
  type FormOptions,
  type Headers,
  readForm,
  requireSecret,
  type SecretOptions,
} from '../arguments.ts'
import { addReportOptions, list, openReport, type ReportOptions, type Result, select } from '../report.ts'
import { escaped, interruption, note, UsageError } from '../terminal.ts'
import { CERTIFICATE, casesOf } from './cases.ts'
import { DEFAULT_FORM } from './message.ts'
import { runCases } from './run.ts'

interface Options extends SecretOptions, ReportOptions, FormOptions {
  readonly yes?: boolean
  readonly header?: Headers
}

export function define(command: Command): void {
  command.argument('[url]', 'the endpoint', address).action(check)
  addReportOptions(command)
  command.option('--yes', 'send to another machine without asking')
  addSecretOptions(addHeaderOption(addFormOptions(command))).addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 nothing failed, 1 a case failed, 2 wrong usage, or the address does not respond.

Examples:
  hookline check http://localhost:3000/webhooks
      Sends all cases, signed with the secret in HOOKLINE_SECRET.
  hookline check http://localhost:3000/webhooks --secret-file secret.txt --strict --junit report.xml
      For continuous integration: warnings count as failures, and the results are written to a file.
  hookline check http://localhost:3000/webhooks --as customer.io --method PUT
      Sends the cases in the form that Customer.io's Data Pipelines uses.
  hookline check --list
      Prints the cases, each with its section of https://hookline.github.io/hookline/specification.`

async function check(url: URL | undefined, options: Options): Promise<void> {
  const request = readForm(options)
  const all = casesOf(request)
  if (options.list) return list(select(all, options), options)
  if (url === undefined) throw new UsageError('A URL is required. Pass, for example, http://localhost:3000/webhooks.')
  const cases = select(all, options).filter((each) => each !== CERTIFICATE || url.protocol === 'https:')
  const { headers, secret } = { headers: options.header ?? {}, secret: await requireSecret(options) }
  const report = openReport(options, cases)
  const base = { form: { ...DEFAULT_FORM, fields: request.fields }, secret, headers, request }
  const count = cases.reduce((sum, each) => sum + each.requests(base).length, 1) // The number of requests that a correct endpoint gets.
  const what = `about ${count} signed and forged messages of users named hookline-check-<random>`
  const effect = 'The endpoint handles the authentic ones, and may log refusals of the others.'
  note(escaped(`Sends ${what} for ${cases.length} cases to ${url.origin}${url.pathname}. ${effect}`))
  await confirmRemote(url, what, options.yes)

  const signal = interruption()
  const failure = await createPoster(url).reach()
  if (failure === undefined) {
    if (cases.includes(CERTIFICATE)) {
      report.add(certificate('pass', 'A TLS connection was opened. The certificate is trusted.'))
    }
    await runCases(
      cases.filter((each) => each !== CERTIFICATE),
      { url, secret, headers, request, signal },
      report,
    )
  } else {
    const reason = `${failure.rule}. Got ${failure.found}. ${failure.advice}`
    if (failure.error !== 'tls' && failure.error !== 'self_signed') throw new UsageError(reason)
    report.add(certificate('fail', `${reason} Senders send nothing to such a server.`))
    for (const { id, section } of cases) {
      if (id !== CERTIFICATE.id)
        report.add({ id, section, result: 'skip', sentence: 'Not sent: the case certificate failed.' })
    }
  }
  report.finish(signal.aborted)
}

function certificate(result: 'pass' | 'fail', sentence: string): Result {
  return { id: CERTIFICATE.id, section: CERTIFICATE.section, result, sentence }
}

/** `hookline check`: judges an endpoint in any language by what it answers. */

import type { Command } from 'commander'
import {
  addExamples,
  address,
  addSecretOptions,
  confirmRemote,
  requireSecret,
  type SecretOptions,
} from '../arguments.ts'
import { addSelectionOptions, list, type Result, type SelectionOptions, select } from '../cases.ts'
import { reach } from '../exchange.ts'
import { addHeaderOption, type Headers } from '../headers.ts'
import { addReportOptions, openReport, type Report, type ReportOptions } from '../report.ts'
import { escaped, interruption, note, UsageError } from '../terminal.ts'
import { BYTE_CASES } from './byte-cases.ts'
import { defineCase, type EndpointCase } from './endpoint-case.ts'
import { DEFAULT_FORM } from './message.ts'
import { MESSAGE_CASES, PLAIN } from './message-cases.ts'
import { run } from './run.ts'
import { SIGNATURE_CASES } from './signature-cases.ts'
import { ANSWER_IN_TIME, BODY_CASES, CONNECTION_CASES, TRAFFIC_CASES } from './traffic-cases.ts'

/** Of https only. It is found before a request is sent. */
const CERTIFICATE: EndpointCase = {
  ...defineCase('answered', {
    id: 'certificate',
    sends: 'nothing: a connection with TLS is opened',
    section: 'Authentication 4',
    advice: '',
    shots: () => [],
  }),
  expects: 'a certificate of an authority that is trusted',
}

/** What matters most: a slow endpoint gets but a few cases in a minute. The other forged messages come late, because some ban their sender. */
const isEarly = ({ id }: EndpointCase): boolean =>
  ['signature-missing', 'signature-forged', 'body-changed'].includes(id)

/** All cases of an endpoint, in the order in which they run. */
export const ENDPOINT_CASES: readonly EndpointCase[] = [
  CERTIFICATE,
  PLAIN,
  ANSWER_IN_TIME,
  ...SIGNATURE_CASES.filter(isEarly),
  ...MESSAGE_CASES,
  ...BYTE_CASES,
  ...TRAFFIC_CASES,
  ...SIGNATURE_CASES.filter((each) => !isEarly(each)),
  ...BODY_CASES,
  ...CONNECTION_CASES,
]

interface Options extends SecretOptions, SelectionOptions, ReportOptions {
  readonly json?: boolean
  readonly yes?: boolean
  readonly header?: Headers
}

/** Declares the subcommand. */
export function define(command: Command): void {
  command.argument('[url]', 'the endpoint', address).action(check)
  addSelectionOptions(command)
  addReportOptions(command)
  command
    .option('--yes', 'send to another machine without asking')
    .option('--sender', 'judge a sender in place of an endpoint: see hookline check --sender --help')
  addHeaderOption(command)
  addSecretOptions(command)
  command.addHelpText(
    'after',
    '\nExit codes: 0 nothing failed, 1 a case failed, 2 wrong usage, or the address does not respond.',
  )
  addExamples(command, [
    ['hookline check http://localhost:3000/webhooks', 'Sends all cases, signed with the secret of HOOKLINE_SECRET.'],
    [
      'hookline check http://localhost:3000/webhooks --secret-file secret.txt --strict --junit report.xml',
      'For continuous integration: warnings fail, and the results are in a file.',
    ],
    ['hookline check --list', 'Prints the cases.'],
  ])
}

async function check(url: URL | undefined, options: Options): Promise<void> {
  if (options.list) return list(select(ENDPOINT_CASES, options), options)
  if (url === undefined) throw new UsageError('A URL is required, for example http://localhost:3000/webhooks.')
  const cases = select(ENDPOINT_CASES, options).filter((each) => each !== CERTIFICATE || url.protocol === 'https:')
  const secret = requireSecret(options)
  const report = openReport(options, cases)
  const what = `about ${countRequests(cases)} messages, signed and forged, of users named hookline-check-<random>`
  note(escaped(`Sends ${what}, to ${url.origin}${url.pathname}.`))
  await confirmRemote(url, what, options.yes)

  const signal = interruption()
  const failure = await reach(url)
  if (failure === undefined) {
    if (cases.includes(CERTIFICATE))
      report.add(certificate('pass', 'Opened a connection with TLS. The certificate is trusted.'))
    await run(cases, { url, secret, headers: options.header ?? {}, signal }, report)
  } else {
    const reason = `${failure.rule}. Got ${failure.found}. ${failure.advice}`
    if (failure.error !== 'tls' && failure.error !== 'self_signed') throw new UsageError(reason)
    report.add(certificate('fail', `${reason} Senders send nothing to such a server.`))
    skipAll(cases, report)
  }
  report.finish(signal.aborted)
}

function certificate(result: 'pass' | 'fail', sentence: string): Result {
  return { id: CERTIFICATE.id, section: CERTIFICATE.section, result, sentence }
}

function skipAll(cases: readonly EndpointCase[], report: Report): void {
  for (const { id, section } of cases) {
    if (id !== CERTIFICATE.id) report.add({ id, section, result: 'skip', sentence: 'Not sent: see certificate.' })
  }
}

/** As many as a correct endpoint gets. */
function countRequests(cases: readonly EndpointCase[]): number {
  const base = { form: DEFAULT_FORM, secret: 'secret', headers: {} }
  return cases.reduce((count, each) => count + each.shots(base).length, 1)
}

/** `hookline send`: signs messages as a webhook destination does, and sends them to an endpoint. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { MESSAGE_TYPES, sign } from 'hookline'
import type { Tampering } from 'hookline/sender'
import { createPoster, type Exchange, TAMPERINGS, tamper } from '../../../../src/internals.ts'
import {
  addFormOptions,
  addHeaderOption,
  address,
  addSecretOptions,
  choice,
  confirmRemote,
  type FormOptions,
  findSecret,
  type Headers,
  readForm,
  requireSecret,
  type SecretOptions,
  whole,
} from '../arguments.ts'
import { interruption } from '../terminal.ts'
import { addEdit, type Edit } from './prepare.ts'
import { createReport, type Result } from './report.ts'
import { type Item, openSource } from './source.ts'

interface Options extends SecretOptions, FormOptions {
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

export function define(command: Command): void {
  command
    .argument('<source>', `a type (${MESSAGE_TYPES.join(', ')}), a file, or - for messages from stdin, one per line`)
    .requiredOption('--to <url>', 'the endpoint', address)
    .option('--set <field=value>', 'set a field, such as properties.total=12; repeatable', addEdit)
    .addOption(choice('--tamper <way>', 'send each message with a fault', TAMPERINGS))
    .option('--count <n>', 'how often to send each message, each time with a new id', whole(1, 1_000_000_000), 1)
    .option('--rate <n>', 'the maximum number of messages per second', whole(1, 100_000))
    .option('--concurrency <n>', 'the maximum number of attempts at a time', whole(1, 1_000), 1)
    .option('--json', 'print a JSON object for each attempt')
    .option('--yes', 'send to another machine without asking')
    .action(send)
  addSecretOptions(addHeaderOption(addFormOptions(command))).addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 every message was accepted, 1 a message was not, 2 wrong usage.

Examples:
  hookline send track --set properties.total=12 --to http://localhost:3000/webhooks
      Sends a track message, signed with the secret in HOOKLINE_SECRET.
  hookline send message.json --tamper bad-signature --to http://localhost:3000/webhooks --secret-file secret.txt
      Sends the exact bytes of a file with a wrong signature. The endpoint should refuse it.
  hookline send - --rate 50 --concurrency 8 --to http://localhost:3000/webhooks < messages.ndjson
      Sends each line of a file, 50 per second.
  hookline send order.json --as customer.io --method PUT --to http://localhost:3000/webhooks
      Sends any JSON, as a webhook of Customer.io's Data Pipelines with mapped data does.`

/** Reads each message only when it can be sent. When the user stops the command, aborts the running attempts. */
async function send(name: string, options: Options): Promise<void> {
  const { to, set: edits = [], header: headers = {}, tamper: tampering, count, rate, concurrency, json } = options
  const secret = tampering === 'no-signature' ? await findSecret(options) : await requireSecret(options)
  const form = readForm(options)
  const source = await openSource(name, { count, edits, form })
  await confirmRemote(to, source.what, options.yes)
  const signal = interruption()
  const items = source.items(signal)
  const poster = createPoster(to, concurrency)
  const report = createReport(json ?? false)
  const pace = createPace(rate, signal)
  let givenUp = 0

  async function post({ line, share, prepared, fault }: Item): Promise<void> {
    const place = line === undefined ? {} : { line }
    if (prepared === undefined) {
      return report.add({ ...place, ok: false, error: 'no_message', ...(fault && { reason: fault }) }, share)
    }
    const { bytes, message } = prepared
    const { method, proofHeader, userAgent } = form
    const proof = secret && (form.signs === 'header' ? secret : sign(bytes, secret))
    const sent = tamper(bytes, proof, tampering)
    const proven = sent.signature === undefined ? {} : { [proofHeader]: sent.signature }
    const all = { ...headers, 'content-type': 'application/json', 'user-agent': userAgent, ...proven }
    const { type, messageId } = message
    for (let copy = 0; copy < sent.copies; copy += 1) {
      await pace()
      if (signal.aborted) return
      const exchange = await poster.post(sent.bytes, all, { isChunked: sent.isChunked, signal, method })
      if (signal.aborted && exchange.error !== undefined) givenUp += 1
      else await report.add({ ...place, type, messageId, ...toResult(exchange) }, share)
    }
  }

  async function work(): Promise<void> {
    for await (const item of items) {
      if (signal.aborted) return
      await post(item)
    }
  }

  try {
    await Promise.all(Array.from({ length: concurrency }, work))
    if (!report.finish(givenUp, signal.aborted)) process.exitCode = 1
  } finally {
    await poster.close()
  }
}

const ANSWER_LENGTH = 500

function toResult({ status, body, durationMs, error, reason }: Exchange): Result {
  if (status === undefined) return { ok: false, durationMs, ...(error && { error }), ...(reason && { reason }) }
  const ok = status >= 200 && status < 300
  const answer = body.toString().slice(0, ANSWER_LENGTH)
  return { ok, status, durationMs, ...(!ok && answer !== '' && { answer }) }
}

/** The maximum time by which sending may lag behind the rate, in milliseconds. Overdue requests are sent in a burst. */
const BURST_MS = 100

function createPace(rate: number | undefined, signal: AbortSignal): () => Promise<void> {
  let turn = 0
  return async () => {
    if (rate === undefined) return
    const now = performance.now()
    turn = Math.max(turn + 1000 / rate, now - BURST_MS)
    if (turn > now) await delay(turn - now, undefined, { signal }).catch(() => {})
  }
}

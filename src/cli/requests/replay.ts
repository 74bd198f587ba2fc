/** `hookline replay`: sends kept requests again, the identical bytes. */

import type { Command } from 'commander'
import { isObject, parseJson, parseObject } from '../../message/json.ts'
import { sign } from '../../message/signature.ts'
import { address, addSecretOptions, confirmRemote, requireSecret, type SecretOptions } from '../arguments.ts'
import { ownFields } from '../copies.ts'
import { addStoreOption, findRequests, type KeptRequest, pairsOf, REFERENCE, SHOWN_DIGITS } from '../request-store.ts'
import { counted, escaped, interruption, paint, print, UsageError } from '../terminal.ts'
import { createForwarder, type ForwardedAnswer } from './forward.ts'

interface Options extends SecretOptions {
  readonly to: URL
  readonly store: string
  readonly sign?: boolean
  readonly fresh?: boolean
  readonly yes?: boolean
}

export function define(command: Command): void {
  command
    .argument('<id...>', REFERENCE)
    .requiredOption('--to <url>', 'where to send them; without a path, each goes to the path that it came to', address)
    .option('--sign', 'sign anew, with the secret; --secret and --secret-file mean this too')
    .option(
      '--fresh',
      'give each message a new messageId and timestamp, so that no receiver takes it for a copy; signs anew',
    )
    .option('--yes', 'do not ask before sending to another machine')
    .action(replay)
  addSecretOptions(addStoreOption(command), 'the secret to sign anew with').addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 each was answered 2xx, 1 one was not, 2 wrong usage.

Examples:
  hookline replay last --to http://localhost:3000/webhooks
      Sends the newest request again, the same bytes.
  hookline replay last~1 last --to http://localhost:3000/webhooks --secret-file secret.txt
      Signs two of them anew.
  hookline replay last --to http://localhost:3000/webhooks --fresh
      Sends the newest request again, as a message of its own.`

async function replay(references: readonly string[], options: Options): Promise<void> {
  const { to, store: path, sign: signsAnew = false, fresh = false, yes = false, ...secrets } = options
  const needsSecret = signsAnew || fresh || secrets.secret !== undefined || secrets.secretFile !== undefined
  const secret = needsSecret ? await requireSecret(secrets) : undefined
  const found = findRequests(path, references)
  const requests = fresh ? found.map(refreshed) : found
  await confirmRemote(to, counted(requests.length, 'request'), yes)

  const interrupted = interruption()
  const forwarder = createForwarder(to, 1)
  for (const request of requests) {
    if (interrupted.aborted) break
    const answer = request.isComplete
      ? await forwarder.forward(secret === undefined ? request : signed(request, secret), interrupted)
      : undefined
    const isFine = answer?.status !== undefined && answer.status >= 200 && answer.status < 300
    if (!isFine) process.exitCode = 1
    print(
      `${request.id.slice(0, SHOWN_DIGITS)}  ${paint(isFine ? 'green' : 'red', resultOf(answer, interrupted.aborted))}`,
    )
  }
  await forwarder.close()
}

function resultOf(answer: ForwardedAnswer | undefined, isInterrupted: boolean): string {
  if (answer === undefined) return 'not sent: not all of its body is kept'
  const { status, durationMs, body, reason = '' } = answer
  if (status === undefined && isInterrupted) return 'interrupted: it may have been taken'
  if (status === undefined) return escaped(reason)
  const copy = isDuplicate(body) ? ', a copy that was not handled again; --fresh makes it a message of its own' : ''
  return `${status} after ${Math.round(durationMs)} ms${copy}`
}

function isDuplicate(body: Buffer): boolean {
  try {
    return parseObject(body).duplicate === true
  } catch {
    return false
  }
}

/** @throws UsageError for a body that holds no message. */
function refreshed(request: KeptRequest): KeptRequest {
  const renew = (message: unknown): object => {
    if (!isObject(message)) throw new Error('no object')
    return { ...message, ...ownFields(message) }
  }
  try {
    const message = parseJson(request.body)
    const body = Array.isArray(message) ? message.map(renew) : renew(message)
    return { ...request, body: Buffer.from(JSON.stringify(body)) }
  } catch {
    const id = request.id.slice(0, SHOWN_DIGITS)
    throw new UsageError(
      `--fresh needs messages. The body of ${id} is no JSON object or list of them. Leave --fresh out.`,
    )
  }
}

function signed(request: KeptRequest, secret: string): KeptRequest {
  const others = pairsOf(request.headers).filter(([name]) => name.toLowerCase() !== 'x-signature')
  return { ...request, headers: [...others.flat(), 'X-Signature', sign(request.body, secret)] }
}

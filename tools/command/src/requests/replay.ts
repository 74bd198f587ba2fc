/** `hookline replay`: sends the identical bytes of stored requests again. */

import { existsSync } from 'node:fs'
import type { Command } from 'commander'
import { isObject, tryParse } from '../../../json.ts'
import { address, confirmRemote } from '../arguments.ts'
import { addStoreOption, openStore, REFERENCE } from '../request-store.ts'
import { counted, escaped, interruption, paint, print, UsageError } from '../terminal.ts'
import { createForwarder, type ForwardedAnswer } from './forward.ts'
import { SHOWN_DIGITS } from './kept-request.ts'

interface Options {
  readonly to: URL
  readonly store: string
  readonly yes?: boolean
}

export function define(command: Command): void {
  command
    .argument('<id...>', REFERENCE)
    .requiredOption('--to <url>', 'where to send them; a URL without a path keeps each path', address)
    .option('--yes', 'do not ask before sending to another machine')
    .action(replay)
  addStoreOption(command).addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 every request was answered 2xx, 1 a request was not, 2 wrong usage.

Examples:
  hookline replay last --to http://localhost:3000/webhooks
      Sends the newest request again, with the same bytes and headers.
  hookline replay last~1 last --to http://localhost:3000/webhooks
      Sends the two newest requests again, the older one first.`

async function replay(references: readonly string[], { to, store: path, yes = false }: Options): Promise<void> {
  if (references.some(isPlace)) {
    throw new UsageError(
      '`hookline replay` needs the ids of requests that `hookline listen` has stored. To replay messages of a queue, run `hookline queue LOCATION replay`.',
    )
  }
  const store = openStore(path)
  const requests = references.map(store.get)
  store.close()
  await confirmRemote(to, counted(requests.length, 'request'), yes)

  const interrupted = interruption()
  const forwarder = createForwarder(to, 1)
  for (const request of requests) {
    if (interrupted.aborted) break
    const answer = request.isComplete ? await forwarder.forward(request, interrupted) : undefined
    const isFine = answer?.status !== undefined && answer.status >= 200 && answer.status < 300
    if (!isFine) process.exitCode = 1
    print(
      `${request.id.slice(0, SHOWN_DIGITS)}  ${paint(isFine ? 'green' : 'red', resultOf(answer, interrupted.aborted))}`,
    )
  }
  await forwarder.close()
}

/** Returns whether the text is a location for `hookline queue`, such as a file or a URL, instead of the id of a request. */
function isPlace(reference: string): boolean {
  return /^[a-z+]+:\/\//i.test(reference) || existsSync(reference)
}

function resultOf(answer: ForwardedAnswer | undefined, isInterrupted: boolean): string {
  if (answer === undefined) return 'not sent: its body was not stored in full'
  const { status, durationMs, body, reason = '' } = answer
  if (status === undefined && isInterrupted) return 'interrupted: it may have been accepted'
  if (status === undefined) return escaped(reason)
  return `${status} after ${Math.round(durationMs)} ms${isDuplicate(body) ? ', recognised as a copy and not handled again' : ''}`
}

function isDuplicate(body: Buffer): boolean {
  const answer = tryParse(body)
  return isObject(answer) && answer.duplicate === true
}

/** `hookline show`: shows one stored request in full. */

import { isUtf8 } from 'node:buffer'
import type { Command } from 'commander'
import { explainSignature } from 'hookline/testing'
import { shownUrl } from '../../../../src/internals.ts'
import { addSecretOptions, findSecret, type SecretOptions } from '../arguments.ts'
import { addStoreOption, openStore, REFERENCE } from '../request-store.ts'
import { escaped, escapedLines, prettyOf, print, UsageError } from '../terminal.ts'
import { headerOf, type KeptRequest } from './kept-request.ts'
import { shownHeaders, timeOf, verificationOf } from './list.ts'

interface Options extends SecretOptions {
  readonly store: string
  readonly raw?: boolean
}

export function define(command: Command): void {
  command
    .argument('<id>', REFERENCE)
    .option('--raw', 'write only the exact bytes of the body, to a file or a pipe')
    .action(show)
  addSecretOptions(addStoreOption(command), 'the secret to explain the signature with').addHelpText('after', HELP)
}

const HELP = `
Examples:
  hookline show last
      Shows the newest request, and why its signature does not match.
  hookline show last --raw > body.json
      Saves the exact bytes of its body.`

async function show(reference: string, { store: path, raw = false, ...secrets }: Options): Promise<void> {
  if (raw && process.stdout.isTTY) {
    throw new UsageError(
      '--raw writes untrusted bytes, which could control this terminal. Redirect the output to a file or a pipe.',
    )
  }
  const secret = await findSecret(secrets)
  const store = openStore(path)
  const request = store.get(reference)
  store.close()
  if (raw) process.stdout.write(request.body)
  else print(describe(request, secret))
}

function describe(request: KeptRequest, secret: string | undefined): string {
  const { id, receivedAt, method, target, headers, message, answer, body, size, isComplete, answerBody } = request
  const parts = [
    `id         ${id}`,
    `received   ${timeOf(receivedAt)}`,
    `request    ${escaped(`${method} ${shownUrl(target)}`)}`,
    `answer     ${answer.status ?? 'none'} after ${Math.round(answer.durationMs)} ms. ${escaped(answer.note ?? '')}`.trimEnd(),
    `signature  ${explain(request, secret)}`,
    ...(message.fault ? [`message    ${escaped(message.fault)}`] : []),
    `\nheaders\n${headersOf(headers, request)}`,
    `\nbody, ${size} bytes${isComplete ? '' : `, of which ${body.length} are stored`}${isUtf8(body) ? '' : ', not valid UTF-8: --raw writes them unchanged'}\n${prettyOf(body)}`,
  ]
  if (answer.by === 'forward' && answer.status !== undefined) {
    parts.push(
      `\nheaders of the answer\n${headersOf(answer.headers, request)}`,
      `\nbody of the answer\n${prettyOf(answerBody)}`,
    )
  }
  return parts.join('\n')
}

function explain(request: KeptRequest, secret: string | undefined): string {
  const { isComplete, body, headers, verification } = request
  if (secret === undefined || !isComplete) {
    return verificationOf(request) + (isComplete ? ADVICE[verification] : '')
  }
  const { message } = explainSignature(body, headerOf(headers, 'x-signature'), secret)
  return escapedLines(message).replaceAll('\n', '\n           ')
}

const ADVICE: Readonly<Record<KeptRequest['verification'], string>> = {
  verified: '',
  mismatched: ' Pass the secret to get an explanation.',
  unchecked: '. Pass the secret to verify it.',
}

function headersOf(headers: readonly string[], request: KeptRequest): string {
  return shownHeaders(headers, request)
    .map(([name, value]) => escaped(`  ${name}: ${value}`))
    .join('\n')
}

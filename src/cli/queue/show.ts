/** `hookline queue … show ID`: what one dead letter is, and why it is one. */

import { isUtf8 } from 'node:buffer'
import { readRetryState } from '../../destination/retry-state.ts'
import { isSecretHeader } from '../../inbox/envelope.ts'
import { type DeadLetterMessage, readDeadLetter } from '../../inbox/stored.ts'
import type { DeadLetter, Queue } from '../../queues/queue.ts'
import type { Attempt } from '../../sender/api.ts'
import { prettyOf } from '../body.ts'
import { escaped, note, print, printJson } from '../terminal.ts'
import { ageOf, identify, isOfInbox, messageOf, nameOf, readLetters } from './letters.ts'

/** Prints it. Sets exit code 1 when it does not exist. */
export async function showLetter(
  queue: Queue,
  given: string,
  { json = false }: { readonly json?: boolean },
): Promise<void> {
  const letter = await find(queue, given.toLowerCase())
  if (letter === undefined) {
    note(`No dead letter has the id ${escaped(given)}.`)
    process.exitCode = 1
  } else if (json) {
    printJson(jsonOf(letter))
  } else {
    print(textOf(letter))
  }
}

async function find(queue: Queue, id: string): Promise<DeadLetter | undefined> {
  for await (const letter of readLetters(queue)) if (letter.id === id) return letter
  return undefined
}

function jsonOf(letter: DeadLetter): object {
  const { id, reason, failedAt, body: stored } = letter
  const bytes = messageOf(letter)
  const body = isUtf8(bytes)
    ? { body: Buffer.from(bytes).toString() }
    : { bodyBase64: Buffer.from(bytes).toString('base64') }
  const common = { id, reason, failedAt, ...identify(bytes), ...body }
  if (!isOfInbox(stored)) return { ...common, attempts: attemptsOf(letter) }
  const { attempts, error, receivedAt, verified, source, headers } = readDeadLetter(letter)
  return { ...common, attempts, error, receivedAt, verified, source, headers: shown(headers) }
}

function textOf(letter: DeadLetter): string {
  const { id, reason, failedAt, body: stored } = letter
  const bytes = messageOf(letter)
  const lines = [
    `id        ${escaped(id)}`,
    `message   ${nameOf(identify(bytes))}`,
    `reason    ${escaped(reason)}`,
    `failed    ${timeOf(failedAt)}`,
    ...(isOfInbox(stored) ? linesOfInbox(readDeadLetter(letter)) : attemptsOf(letter).map(lineOf)),
    `\nbody, ${bytes.length} bytes\n${prettyOf(bytes)}`,
  ]
  return lines.join('\n')
}

function linesOfInbox({ attempts, error, receivedAt, verified, source, headers }: DeadLetterMessage): string[] {
  const causes = error.causes.map(({ name, message }) => escaped(`          ${name}: ${message}`))
  return [
    `attempts  ${attempts}`,
    `error     ${escaped(error.message)}`,
    ...causes,
    `received  ${receivedAt === undefined ? 'unknown' : timeOf(receivedAt)}, ${verified ? 'with a right signature' : 'unverified'}`,
    ...(source === undefined ? [] : [`source    ${escaped(source)}`]),
    '\nheaders',
    ...Object.entries(shown(headers)).map(([name, value]) => escaped(`  ${name}: ${value}`)),
  ]
}

/** Of a destination. Which URL each went to is not in the queue. */
function attemptsOf({ retryState }: DeadLetter): Omit<Attempt, 'url'>[] {
  return readRetryState(retryState, []).attempts.map(({ url: _, ...attempt }) => attempt)
}

function lineOf({ at, status, error, reason, durationMs, body }: Omit<Attempt, 'url'>): string {
  const outcome = status === undefined ? `${error}${reason === undefined ? '' : `: ${reason}`}` : `status ${status}`
  return escaped(`attempt   ${at.toISOString()}  ${outcome}, after ${Math.round(durationMs)} ms${body && `: ${body}`}`)
}

/** Releases before this one may have stored headers that this one leaves out. */
function shown(headers: DeadLetterMessage['headers']): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, isSecretHeader(name) ? '(hidden)' : value]),
  )
}

function timeOf(at: Date): string {
  return `${at.toISOString()}, ${ageOf(Date.now() - at.getTime())} ago`
}

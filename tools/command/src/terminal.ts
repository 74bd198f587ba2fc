/** Prints to the terminal: data on stdout, everything else on stderr. Escapes untrusted text. */

import { styleText } from 'node:util'
import { HooklineError } from 'hookline'
import { escaped, explainError, layOut } from '../../../src/internals.ts'

/** An error for incorrect use of the command or an unreachable address. It is printed without a stack trace, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** Escapes untrusted text so that it stays on one line. Control characters become escapes such as `\u{1b}`. */
export { escaped }

export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints a value as one line of JSON. Control characters become escapes such as `\u001b`. */
export function printJson(value: unknown): void {
  print(JSON.stringify(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, asUnits))
}

function asUnits(char: string): string {
  return char
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('')
}

/** Returns a count with its noun: `1 message`, `2 messages`. */
export function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

export function note(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Colours text for stdout. Returns the text unchanged if stdout is not a terminal or `NO_COLOR` is set. */
export function paint(style: Parameters<typeof styleText>[0], text: string): string {
  return styleText(style, text, { stream: process.stdout })
}

/** Exits silently when the reader of a stream closes the stream, as `| head` does. Exits with code 2 after any other error of a stream. */
export function endQuietly(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', ({ code, message }: NodeJS.ErrnoException) => {
      if (code === 'EPIPE') process.exit()
      if (stream === process.stdout) note(`error: The output cannot be written to stdout: ${message}.`)
      process.exit(2)
    })
  }
}

/** Prints an error on one line. Prints the stack of an unexpected error if `DEBUG` contains `hookline` or `*`. Sets exit code 2. */
export function fail(error: unknown): void {
  const isOurs = error instanceof UsageError || error instanceof HooklineError
  const message = explainError(error)
  const wantsStack = !isOurs && /hookline|\*/.test(process.env.DEBUG ?? '')
  note(`error: ${wantsStack ? ((error as Partial<Error> | undefined)?.stack ?? message) : escaped(message)}`)
  process.exitCode = 2
}

/** @throws UsageError on Node versions older than `least`. Without this check, packages would fail there with a stack trace. */
export function requireNode(least: string): void {
  const found = process.versions.node
  if (found.localeCompare(least, 'en', { numeric: true }) >= 0) return
  throw new UsageError(`hookline needs Node ${least} or newer. Got Node ${found}. Install a newer version.`)
}

/** Hides warnings about experimental features, such as node:sqlite in Node 22, because they are meant for developers. */
export function hideExperimentalWarnings(): void {
  const { emitWarning } = process
  process.emitWarning = (...args: unknown[]) => {
    if (args[1] !== 'ExperimentalWarning') Reflect.apply(emitWarning, process, args)
  }
}

/**
 * Returns a signal that is aborted by the first Ctrl-C (or SIGTERM), so that a command can still print its results. A second Ctrl-C
 * exits the process.
 */
export function interruption(): AbortSignal {
  const controller = new AbortController()
  const interrupt = (): void => {
    if (controller.signal.aborted) process.exit(130)
    controller.abort()
  }
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt)
  return controller.signal
}

/** The maximum factor by which indentation may lengthen a text. JSON that would grow more, because it is deeply nested, is not indented. */
const MAX_GROWTH = 20

/** Indents and escapes JSON. Keeps each number and string as written. Anything other than JSON is only escaped. */
export function prettyOf(body: Uint8Array): string {
  const text = Buffer.from(body).toString()
  return escapedLines(layOut(text, 'indented', MAX_GROWTH * text.length + 1_000) ?? text)
}

/** Escapes each line of untrusted text, and keeps the line breaks. */
export function escapedLines(text: string): string {
  return text.split(/\r?\n/).map(escaped).join('\n')
}

/** Defines and reads the arguments that several subcommands share, such as secrets, addresses, headers, files and numbers. */

import { isUtf8 } from 'node:buffer'
import { lookup } from 'node:dns/promises'
import { open } from 'node:fs/promises'
import { type Server, validateHeaderName } from 'node:http'
import { isIP } from 'node:net'
import { createInterface } from 'node:readline/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { DeliveryMethod, FieldValue } from 'hookline'
import type { EncryptionOptions } from 'hookline/queues'
import type { KnownSender } from 'hookline/testing'
import { KNOWN_SENDERS, listen, nearest, RESERVED_HEADERS } from '../../../src/internals.ts'
import { readField } from '../../json.ts'
import { note, UsageError } from './terminal.ts'

const SENDERS = Object.keys(KNOWN_SENDERS) as KnownSender[]
const { proofHeader: KEY_HEADER } = KNOWN_SENDERS.rudderstack

/** The options that determine the form of the requests to send. */
export interface FormOptions {
  readonly as: KnownSender
  readonly method?: DeliveryMethod
  readonly keyHeader?: string
}

export function addFormOptions(command: Command): Command {
  return command
    .addOption(choice('--as <sender>', 'the service whose requests to imitate', SENDERS).default('segment'))
    .addOption(
      choice(
        '--method <method>',
        'an HTTP method that the service uses. Default: POST',
        KNOWN_SENDERS['customer.io'].methods,
      ),
    )
    .option(
      '--key-header <name>',
      `the header that carries the secret of a service that does not sign. Default: ${KEY_HEADER}`,
    )
}

/** @throws UsageError for a method that the sender does not use, and for a header that is invalid or does not apply to the sender. */
export function readForm({ as, method, keyHeader }: FormOptions) {
  const { methods, proofHeader, ...form } = KNOWN_SENDERS[as]
  if (method !== undefined && !methods.includes(method)) {
    throw new UsageError(`--method: ${as} does not use ${method}. Valid methods: ${methods.join(', ')}.`)
  }
  if (keyHeader !== undefined && !isToken(keyHeader))
    throw new UsageError(`--key-header must be the name of a header, such as ${KEY_HEADER}.`)
  if (keyHeader !== undefined && form.signs !== 'header')
    throw new UsageError(`--key-header does not apply to ${as}, which signs its requests. Remove the option.`)
  return { ...form, as, method: method ?? methods[0], proofHeader: keyHeader ?? proofHeader }
}

export type RequestForm = ReturnType<typeof readForm>

function isToken(name: string): boolean {
  try {
    validateHeaderName(name)
    return true
  } catch {
    return false
  }
}

export interface SecretOptions {
  readonly secret?: string
  readonly secretFile?: string
}

export function addSecretOptions(command: Command, what = 'the shared secret'): Command {
  return command
    .option('--secret <text>', `${what}; other users of this machine can see it in the process list`)
    .option('--secret-file <file>', `a file that contains ${what}; a line break at its end is ignored`)
    .addHelpText('after', '\nWithout --secret and --secret-file, the secret is read from HOOKLINE_SECRET.')
}

/**
 * Reads the secret from `--secret`, `--secret-file` or `HOOKLINE_SECRET`. Returns undefined if none of them is set.
 *
 * @throws UsageError (as a rejection) for an empty secret, for a file that cannot be read or is not UTF-8, and when both
 *   options are passed.
 */
export async function findSecret({ secret, secretFile }: SecretOptions): Promise<string | undefined> {
  if (secret !== undefined && secretFile !== undefined) {
    throw new UsageError('Pass --secret or --secret-file, not both.')
  }
  const bytes = secretFile === undefined ? undefined : await readInput('--secret-file', secretFile, SECRET_LIMIT)
  if (bytes !== undefined && !isUtf8(bytes))
    throw new UsageError('--secret-file: the file must contain UTF-8 text. Save it as UTF-8.')
  const found = secret ?? bytes?.toString().replace(/\r?\n$/, '') ?? process.env.HOOKLINE_SECRET
  if (found === '') {
    const from = secret === '' ? '--secret' : bytes === undefined ? 'HOOKLINE_SECRET' : '--secret-file'
    throw new UsageError(`The secret from ${from} is empty. Pass the shared secret of the endpoint.`)
  }
  return found
}

/**
 * Reads a file of encryption keys. Each line contains the id of a key and the 32 bytes of the key in base64.
 *
 * @throws UsageError (as a rejection) for a file that is invalid or cannot be read. The error never quotes a line.
 */
export async function readKeyFile(path: string): Promise<EncryptionOptions> {
  const bytes = await readInput('--key-file', path, SECRET_LIMIT)
  const lines = bytes.toString().split(/\r?\n/)
  const keys = lines.flatMap((line, index) => {
    if (line.trim() === '') return []
    const [, id = '', text = ''] = /^\s*([\w.:/-]{1,40})\s+([\w+/-]{43}=?)\s*$/.exec(line) ?? []
    if (id !== '') return { id, key: Buffer.from(text, 'base64') }
    throw new UsageError(
      `--key-file: line ${index + 1} must contain an id, a space and a key of 32 bytes in base64. The id must consist of at most 40 letters, digits and the characters . : / _ -`,
    )
  })
  if (keys.length === 0)
    throw new UsageError('--key-file must contain at least one key. The file has only empty lines.')
  if (new Set(keys.map(({ id }) => id)).size < keys.length)
    throw new UsageError('--key-file must give each key a different id. Two keys have the same id: rename one of them.')
  return { keys }
}

const SECRET_LIMIT = 1_000_000

export async function requireSecret(options: SecretOptions): Promise<string> {
  const secret = await findSecret(options)
  if (secret !== undefined) return secret
  throw new UsageError(
    'A secret is required. Set HOOKLINE_SECRET in this terminal, or pass --secret-file FILE or --secret TEXT. No .env file is read.',
  )
}

/**
 * Reads a file, or stdin for `-`.
 *
 * @param limit The maximum number of bytes.
 * @throws UsageError (as a rejection) for a file that cannot be read or exceeds the limit.
 */
export async function readInput(option: string, path: string, limit: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  if (path === '-' && process.stdin.isTTY) {
    note(
      `Reading from the terminal. To end the input, press ${process.platform === 'win32' ? 'Ctrl-Z and Enter' : 'Ctrl-D'}.`,
    )
  }
  try {
    for await (const chunk of path === '-' ? process.stdin : (await open(path)).createReadStream()) {
      size += chunk.length
      if (size > limit) break
      chunks.push(chunk)
    }
  } catch (error) {
    throw cannotRead(option, path, error)
  }
  if (size <= limit) return Buffer.concat(chunks)
  throw new UsageError(`${option} must be at most ${limit} bytes long. ${named(path)} is longer. Pass less input.`)
}

export function cannotRead(option: string, path: string, error: unknown): UsageError {
  const { code, message } = error as NodeJS.ErrnoException
  // The user may have passed the secret itself instead of a path. The message of Node.js quotes the path.
  const [shown, other] = /^--(secret|key)-file$/.test(option) ? ['the file', code] : [named(path), message]
  const reason = code === 'ENOENT' ? 'it does not exist' : code === 'EISDIR' ? 'it is a directory' : other
  return new UsageError(`${option}: ${shown} cannot be read: ${reason}. Check the path.`)
}

function named(path: string): string {
  return path === '-' ? 'stdin' : path
}

export function choice<Value extends string>(flags: string, what: string, values: readonly Value[]): Option {
  return new Option(flags, what).choices(values).argParser((text) => {
    const found = values.find((value) => value === text)
    if (found !== undefined) return found
    const near = nearest(text, values)
    throw new InvalidArgumentError(
      `It must be one of ${values.join(', ')}.${near === undefined ? '' : ` Did you mean ${near}?`}`,
    )
  })
}

export function whole(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
    if (value >= least && value <= most) return value
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
  }
}

/** Parses a condition, and adds it to the previous conditions. */
export function addField(text: string, fields: Readonly<Record<string, FieldValue>> = {}) {
  const field = readField(text)
  if (field !== undefined) return { ...fields, [field[0]]: field[1] }
  throw new InvalidArgumentError('It must be a path, an equals sign and a value, such as properties.order_id=42.')
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }

/** Converts an age such as `3d`, or a date in ISO 8601, to a `Date`. */
export function time(text: string): Date {
  const [, count, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? []
  const at = count === undefined ? new Date(text) : new Date(Date.now() - Number(count) * (UNITS_MS[unit] as number))
  if (count !== undefined || (isDay(text.slice(0, 10)) && !Number.isNaN(at.getTime()))) return at
  throw new InvalidArgumentError('It must be an age such as 3d, 12h or 30m, or a date such as 2026-11-20T09:30:00Z.')
}

/** Returns whether a day exists. `Date` alone would turn 2026-02-30 into a day in March. */
function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00Z`)
  return /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

export function address(text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    const [found] = /^[\w.-]+(:\d+)?(\/[\w./-]*)?$/.exec(text) ?? [] // Any other text may contain a password or a token, so it is not quoted.
    const got = found === undefined ? '' : ` Got ${found}.`
    const example = `http://${found ?? 'localhost:3000/webhooks'}`
    throw new UsageError(`The URL must begin with http:// or https://.${got} Pass, for example, ${example}.`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new UsageError(
      'The URL must not contain a user name or a password. Pass an Authorization header with --header instead.',
    )
  }
  return url
}

export function isLoopback({ hostname }: URL): boolean {
  return /^(localhost|.+\.localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)
}

/**
 * Asks for confirmation before anything is sent to another machine.
 *
 * @param what What will be sent, without the address, such as `3 messages`.
 * @param yes Whether `--yes` was passed.
 * @throws UsageError (as a rejection) when the user declines, and when there is no terminal.
 */
export async function confirmRemote(url: URL, what: string, yes = false): Promise<void> {
  if (yes || (isLoopback(url) && (await leadsHere(url)))) return
  if (!(await confirm(`Send ${what} to ${url.host}?`))) throw new UsageError('Nothing was sent.')
}

/** Returns false if the host name resolves to an address of another machine. A resolver may do this even for `app.localhost`. */
async function leadsHere({ hostname }: URL): Promise<boolean> {
  const found = isIP(hostname.replace(/^\[|\]$/g, '')) ? [] : await lookup(hostname, { all: true }).catch(() => [])
  return found.every(({ address }) => /^(127\.|::1$)/.test(address))
}

/**
 * Asks for confirmation on the terminal. Only `y` and `yes` confirm.
 *
 * @throws UsageError (as a rejection) when there is no terminal.
 */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    throw new UsageError(`${question} There is no terminal on which to confirm this. Pass --yes to continue.`)
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim())
  } finally {
    terminal.close()
  }
}

export type Headers = Readonly<Record<string, string>>

export function addHeaderOption(command: Command): Command {
  return command.option('--header <header>', 'a header to add, as "Name: value"; repeatable', addHeader)
}

/** Adds a header. Errors never show its value, which may be a token. */
function addHeader(text: string, headers: Headers = {}): Headers {
  const [, name = '', value = ''] = /^([^:]*):[ \t]*(.*)$/s.exec(text) ?? []
  if (!isToken(name))
    throw new InvalidArgumentError('It must be a name, a colon and a value, such as "X-Team: growth".')
  if (RESERVED_HEADERS.has(name.toLowerCase()))
    throw new InvalidArgumentError(`The command sets ${name} itself. Omit this header.`)
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    throw new InvalidArgumentError(`The value of ${name} must be Latin-1 text without control characters.`)
  }
  return { ...headers, [name]: value }
}

/**
 * Makes a server listen on a port.
 *
 * @param option The option that sets the port, for error texts.
 * @throws UsageError (as a rejection) for a port or an address that is not available.
 */
export async function listenOn(option: string, server: Server, port: number, host = '127.0.0.1') {
  return listen(server, port, host).catch(({ code, message }: NodeJS.ErrnoException) => {
    const where = `port ${port} on ${host}`
    if (code === 'EADDRINUSE') {
      throw new UsageError(`${option}: ${where} is already in use. Pass another port.`)
    }
    const others = host === '127.0.0.1' ? `another ${option}` : `another ${option} or --host`
    throw new UsageError(`This process cannot listen on ${where}: ${message}. Pass ${others}.`)
  })
}

/** The option `--header` of subcommands that post: static headers beside those of the destination. */

import { type Command, InvalidArgumentError } from 'commander'
import { isToken } from '../options/checks.ts'
import { RESERVED_HEADERS } from '../sender/webhooks.ts'

/** Names and values of headers. */
export type Headers = Readonly<Record<string, string>>

/** Adds `--header`, which may be repeated. */
export function addHeaderOption(command: Command): Command {
  return command.option('--header <header>', 'a header more, as "Name: value"; repeatable', addHeader)
}

/** Its errors never show a value, which may be a token. */
function addHeader(text: string, headers: Headers = {}): Headers {
  const [, name = '', value = ''] = /^([^:]*):[ \t]*(.*)$/s.exec(text) ?? []
  if (!isToken(name)) throw new InvalidArgumentError('It must be a name, a colon and a value: "X-Team: growth".')
  if (RESERVED_HEADERS.has(name.toLowerCase())) throw new InvalidArgumentError(`The command sets ${name} itself.`)
  if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
    throw new InvalidArgumentError(`The value of ${name} must be Latin-1 text without control characters.`)
  }
  return { ...headers, [name]: value }
}

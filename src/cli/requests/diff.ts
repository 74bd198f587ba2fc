/** `hookline diff`: two kept requests, compared by header, by field and by byte. */

import type { Command } from 'commander'
import { type JsonNode, readJsonText } from '../../message/explain/json-text.ts'
import { addStoreOption, findRequests, groupHeaders, type KeptRequest, REFERENCE } from '../request-store.ts'
import { escaped, paint, print } from '../terminal.ts'
import { shownValue, timeOf } from './list.ts'

export function define(command: Command): void {
  command.argument('<id>', REFERENCE).argument('<other>', 'another one').action(diff)
  addStoreOption(command).addHelpText('after', HELP)
}

const HELP = `
Exit codes: 0 the bodies are the same bytes, 1 they differ, 2 wrong usage.

Examples:
  hookline diff last~1 last
      Compares the last two requests: is the retry the same?
  hookline diff last~2 last --store .hookline/listen.sqlite
      Compares requests of another store.`

function diff(reference: string, otherReference: string, { store: path }: { readonly store: string }): void {
  const [one, other] = findRequests(path, [reference, otherReference]) as [KeptRequest, KeptRequest]
  const isSame = Buffer.from(one.body).equals(other.body)
  process.exitCode = isSame ? 0 : 1
  print(paint('red', `- ${one.id}  ${timeOf(one.receivedAt)}`))
  print(paint('green', `+ ${other.id}  ${timeOf(other.receivedAt)}`))
  section('headers', compare(headersOf(one), headersOf(other), shownValue))
  if (isSame) print(`\nThe bodies are the same ${one.body.length} bytes.`)
  else printBodies(one.body, other.body)
}

function printBodies(body: Uint8Array, otherBody: Uint8Array): void {
  const [fields, otherFields] = [listFields(body), listFields(otherBody)]
  if (fields && otherFields) {
    const changes = compare(fields, otherFields)
    section('fields', changes)
    if (changes.length === 0) print('\nThe fields are the same: their order or the white space differs.')
  } else print('\nThe bodies cannot be compared by field: one of them is not JSON.')
  const at = firstDifference(body, otherBody)
  const lines = [`- ${excerptOf(body, at)}`, `+ ${excerptOf(otherBody, at)}`]
  section(`bytes: ${body.length} and ${otherBody.length}, and the first that differs is byte ${at + 1}`, lines)
}

function section(title: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  const painted = lines.map((line) => paint(line.startsWith('-') ? 'red' : 'green', escaped(line)))
  print(['', title, ...painted].join('\n'))
}

function compare(
  one: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
  show = (_name: string, value: string): string => value,
): string[] {
  return [...new Set([...one.keys(), ...other.keys()])].flatMap((name) => {
    const [before, after] = [one.get(name), other.get(name)]
    if (before === after) return []
    return [...lineOf('-', name, before && show(name, before)), ...lineOf('+', name, after && show(name, after))]
  })
}

/** Longer values are cut: the bytes show where they differ. */
const MAX_VALUE_LENGTH = 200

function lineOf(sign: string, name: string, value: string | undefined): string[] {
  if (value === undefined) return []
  const shown = value.length > MAX_VALUE_LENGTH ? `${value.slice(0, MAX_VALUE_LENGTH)}…` : value
  return [`${sign} ${name || '(all)'}: ${shown}`]
}

function headersOf({ headers }: KeptRequest): ReadonlyMap<string, string> {
  return new Map([...groupHeaders(headers)].map(([name, values]) => [name, values.join(', ')]))
}

function firstDifference(one: Uint8Array, other: Uint8Array): number {
  let at = 0
  while (one[at] === other[at]) at += 1 // They differ, so it ends.
  return at
}

const AROUND = 24

function excerptOf(bytes: Uint8Array, at: number): string {
  const start = Math.max(0, at - AROUND)
  const text = [...bytes.subarray(start, at + AROUND)].map(shownByte).join('')
  return `${start > 0 ? '…' : ''}${text}${at + AROUND < bytes.length ? '…' : ''}`
}

function shownByte(byte: number): string {
  return byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`
}

/**
 * Lists the fields by their path, as `properties.items[0].total` or `["Previous ID"]`. A key that is there twice has a
 * number behind its second path. Undefined for what is not JSON.
 */
export function listFields(bytes: Uint8Array): ReadonlyMap<string, string> | undefined {
  const json = readJsonText(Buffer.from(bytes).toString())
  if (json === undefined) return undefined
  const { root, tokens, texts } = json
  const fields = new Map<string, string>()
  const counts = new Map<string, number>()

  function add(path: string, value: string): void {
    const count = (counts.get(path) ?? 0) + 1
    counts.set(path, count)
    fields.set(count === 1 ? path : `${path} (${count})`, value)
  }

  function visit(node: JsonNode, path: string): void {
    if (typeof node === 'number') add(path, tokens[node] ?? '')
    else if ('items' in node) {
      if (node.items.length === 0) add(path, '[]')
      for (const [index, item] of node.items.entries()) visit(item, `${path}[${index}]`)
    } else {
      if (node.members.length === 0) add(path, '{}')
      for (const [key, value] of node.members) visit(value, path + step(texts[key] ?? '', path === ''))
    }
  }

  visit(root, '')
  return fields
}

function step(key: string, isFirst: boolean): string {
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `[${JSON.stringify(key)}]`
  return isFirst ? key : `.${key}`
}

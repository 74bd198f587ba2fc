/** Prepares the bytes of a message: unchanged, or changed by `--set` and serialised again. */

import { isUtf8 } from 'node:buffer'
import { InvalidArgumentError } from 'commander'
import { parse } from 'hookline'
import { signedRequest } from 'hookline/testing'
import { isMessage, type Json, tryParse } from '../../../json.ts'
import type { RequestForm } from '../arguments.ts'
import { ownFields } from '../copies.ts'
import { UsageError } from '../terminal.ts'

export interface Prepared {
  readonly bytes: Buffer
  /** The fields of the message; empty when the body is a JSON scalar. */
  readonly message: Json
}

export interface Changes {
  readonly edits: readonly Edit[]
  /** Whether to give the message a new `messageId` and `timestamp`, so that a receiver does not treat it as a duplicate. */
  readonly isCopy: boolean
  readonly form: RequestForm
}

/**
 * Prepares a message. Keeps its exact bytes unless there is something to change.
 *
 * @throws HooklineError for bytes that are not a message. Senders other than `segment` may also send any other JSON. The result of the
 * edits is not checked.
 * @throws UsageError for an edit that does not fit the message.
 */
export function prepare(bytes: Buffer, { edits, isCopy, form }: Changes): Prepared {
  const isOwn = form.fields === undefined
  const given = tryParse(bytes) // The message as it was written. `parse` would add other spellings of its fields.
  if (isOwn || given === undefined || !isUtf8(bytes) || isMessage(given)) parse(bytes)
  if (isOwn && edits.length === 0 && !isCopy) return { bytes, message: given as Json }
  const isJson = typeof given === 'object' && given !== null
  const value: unknown = isOwn || !isJson ? given : JSON.parse(signedRequest(given, ANY, { as: form.as }).body)
  const message = (isJson ? value : {}) as Json
  for (const each of isCopy ? [value].flat() : []) if (isMessage(each)) Object.assign(each, ownFields(each))
  for (const edit of edits) applyEdit(message, edit)
  return { bytes: Buffer.from(JSON.stringify(value)), message }
}

/** A placeholder for the secret. The body does not depend on the secret. */
const ANY = 'any'

export interface Edit {
  /** The path of the field, such as `['properties', 'products', '0', 'price']`. */
  readonly path: readonly string[]
  readonly value: unknown
}

export function addEdit(text: string, edits: readonly Edit[] = []): readonly Edit[] {
  const [, field = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  const path = field.split('.')
  if (path.includes(''))
    throw new InvalidArgumentError('It must be a field, an equals sign and a value, such as properties.total=12.')
  if (path.includes('__proto__'))
    throw new InvalidArgumentError('A field must not be named __proto__. Pass another name.')
  return [...edits, { path, value: parseValue(value) }]
}

function parseValue(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/**
 * Sets a field. Creates missing objects on its path.
 *
 * @throws UsageError when a value on the path cannot have fields, and when an index is beyond the end of a list.
 */
export function applyEdit(message: Json, { path, value }: Edit): void {
  let node = message
  for (const [index, key] of path.entries()) {
    if (Array.isArray(node) && !(/^\d+$/.test(key) && Number(key) <= node.length)) {
      const what = path.slice(0, index).join('.') || 'the body'
      throw new UsageError(
        `--set ${path.join('.')}: ${what} is a list of length ${node.length}. Use an index from 0 to ${node.length}.`,
      )
    }
    if (index === path.length - 1) node[key] = value
    else node = step(node, key, path)
  }
}

function step(node: Json, key: string, path: readonly string[]): Json {
  const next = Object.hasOwn(node, key) ? (node[key] ?? undefined) : undefined
  if (typeof next === 'object') return next as Json
  if (next !== undefined) {
    throw new UsageError(
      `--set ${path.join('.')}: the field ${key} is a ${typeof next}, not an object. Set the whole field.`,
    )
  }
  const created: Json = {}
  node[key] = created
  return created
}

/** The option `--set`: changes fields of a message. */

import { InvalidArgumentError } from 'commander'
import type { Json } from '../../message/json.ts'
import { UsageError } from '../terminal.ts'

/** A field, and its new value. */
export interface Edit {
  /** `['properties', 'products', '0', 'price']` */
  readonly path: readonly string[]
  readonly value: unknown
}

/** Adds `properties.total=12` to the edits. */
export function addEdit(text: string, edits: readonly Edit[] = []): readonly Edit[] {
  const [, field = '', value = ''] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  const path = field.split('.')
  if (path.includes('')) throw new InvalidArgumentError('It must be a field and a value: properties.total=12.')
  if (path.includes('__proto__')) throw new InvalidArgumentError('A field must not be named __proto__.')
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
 * Sets a field. Objects on its way that do not exist are created.
 *
 * @throws UsageError when something on its way cannot hold the field.
 */
export function applyEdit(message: Json, { path, value }: Edit): void {
  let node = message
  for (const [index, key] of path.entries()) {
    if (Array.isArray(node) && !(/^\d+$/.test(key) && Number(key) <= node.length)) {
      const what = path.slice(0, index).join('.')
      throw new UsageError(`--set ${path.join('.')}: ${what} is a list of ${node.length}. Use an index up to that.`)
    }
    if (index === path.length - 1) node[key] = value
    else node = step(node, key, path)
  }
}

function step(node: Json, key: string, path: readonly string[]): Json {
  const next = Object.hasOwn(node, key) ? (node[key] ?? undefined) : undefined
  if (typeof next === 'object') return next as Json
  if (next !== undefined) {
    throw new UsageError(`--set ${path.join('.')}: ${key} is a ${typeof next} and holds no fields. Set ${key} itself.`)
  }
  const created: Json = {}
  node[key] = created
  return created
}

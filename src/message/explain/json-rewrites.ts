/** Writes a JSON text as each serialiser would, and each distinct result once. */

import { compact, writeJson } from './json-layouts.ts'
import type { WriteNumber } from './json-numbers.ts'
import { type Arrange, arrange } from './json-orders.ts'
import type { WriteString } from './json-strings.ts'
import type { JsonText } from './json-text.ts'
import { WRITERS } from './json-writers.ts'

/** What one or several serialisers make of a text. */
export interface Rewrite {
  /** The serialisers, by name; the one with the fewest settings first. */
  readonly names: readonly string[]
  /** Writes the text; undefined for more than `limit` characters. Takes time in proportion to what it writes. */
  write(limit: number): string | undefined
}

/** Lists what the serialisers make of a text. Those that treat its strings, numbers and members alike share one entry. */
export function listRewrites(text: JsonText): readonly Rewrite[] {
  const writeString = memo(
    (write: WriteString) => rewriteAll(text.strings, (string, index) => write(string, text.lexemes[index] as string)),
    (strings) => JSON.stringify(strings),
  )
  const writeNumber = memo(
    (write: WriteNumber) => rewriteAll(text.numbers, write),
    (numbers) => JSON.stringify(numbers),
  )
  const arrangeMembers = memo(
    (rule: Arrange) => arrange(text, rule),
    (root) => (root === text.root ? '' : writeJson(root, { strings: text.lexemes, numbers: text.numbers }, compact)),
  )

  const rewrites = new Map<string, { names: string[]; write: Rewrite['write'] }>()
  for (const { name, string, number, order, layout } of WRITERS) {
    const [strings, numbers, root] = [writeString(string), writeNumber(number), arrangeMembers(order)]
    if (strings.value === undefined || numbers.value === undefined) continue
    const written = { strings: strings.value, numbers: numbers.value }
    const key = [strings.id, numbers.id, root.id, ...Object.values(layout)].join('|')
    const known = rewrites.get(key)
    if (known) known.names.push(name)
    else rewrites.set(key, { names: [name], write: (limit) => writeJson(root.value, written, layout, limit) })
  }
  return [...rewrites.values()]
}

/** Calls a function once for each argument, and gives results that print alike the same id. */
function memo<Argument, Result>(make: (argument: Argument) => Result, print: (result: Result) => string | undefined) {
  const results = new Map<Argument, { readonly id: number; readonly value: Result }>()
  const ids = new Map<string | undefined, number>()
  return (argument: Argument): { readonly id: number; readonly value: Result } => {
    const known = results.get(argument)
    if (known) return known
    const value = make(argument)
    const printed = print(value)
    const id = ids.get(printed) ?? ids.size
    ids.set(printed, id)
    results.set(argument, { id, value })
    return { id, value }
  }
}

/** Every item rewritten; undefined as soon as one is refused. */
function rewriteAll(
  items: readonly string[],
  write: (item: string, index: number) => string | undefined,
): readonly string[] | undefined {
  const written: string[] = []
  for (const [index, item] of items.entries()) {
    const result = write(item, index)
    if (result === undefined) return undefined
    written.push(result)
  }
  return written
}

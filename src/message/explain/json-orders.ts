/** What a language makes of the members of an object: duplicates, their order, and PHP's lists. */

import type { JsonNode, JsonText, Member } from './json-text.ts'

/** Rearranges the members of one object. */
export type Arrange = (members: readonly Member[], strings: readonly string[]) => readonly Member[] | 'list'

/** As they stand, duplicates included. */
export const asWritten: Arrange = (members) => members

/** The last of duplicates, in the place of the first. */
export function asRead(members: readonly Member[], strings: readonly string[]): readonly Member[] {
  if (members.length < 2) return members
  const last = new Map<string | undefined, Member>()
  for (const member of members) last.set(strings[member[0]], member)
  return last.size === members.length ? members : [...last.values()]
}

/** JavaScript's own order: keys that are an index of an array come first, ascending. */
export const indexesFirst: Arrange = (members, strings) => {
  const read = asRead(members, strings)
  const keyOf = ([key]: Member): string => strings[key] as string
  const indexes = read.filter((member) => isIndex(keyOf(member)))
  if (indexes.length === 0) return read
  const sorted = indexes.sort((one, other) => Number(keyOf(one)) - Number(keyOf(other)))
  return [...sorted, ...read.filter((member) => !isIndex(keyOf(member)))]
}

/** Sorted by the UTF-16 of the keys, as `sort()` of JavaScript does. */
export const sortedByUnits: Arrange = (members, strings) =>
  sort(members, strings, (one, other) => (one < other ? -1 : 1))

/** Sorted by the bytes of the keys, as Python, Go and Ruby do: that differs from UTF-16 for surrogates only. */
export const sortedByBytes: Arrange = (members, strings) =>
  sort(members, strings, (one, other) =>
    SURROGATE.test(one) || SURROGATE.test(other)
      ? Buffer.compare(Buffer.from(one), Buffer.from(other))
      : one < other
        ? -1
        : 1,
  )

const SURROGATE = /[\ud800-\udfff]/

/** `json_decode($json, true)`: an object with the keys 0, 1, 2 … in this order, and so an empty one, becomes a list. */
export const phpArrays: Arrange = (members, strings) => {
  const read = asRead(members, strings)
  return read.every(([key], place) => strings[key] === String(place)) ? 'list' : read
}

function sort(
  members: readonly Member[],
  strings: readonly string[],
  compare: (one: string, other: string) => number,
): readonly Member[] {
  const read = asRead(members, strings)
  return [...read].sort(([one], [other]) => compare(strings[one] as string, strings[other] as string))
}

function isIndex(key: string): boolean {
  return /^(0|[1-9]\d{0,9})$/.test(key) && Number(key) < 2 ** 32 - 1
}

/** Rearranges every object of a text. Returns the same node where nothing changes. */
export function arrange({ root, strings }: JsonText, rule: Arrange): JsonNode {
  const visit = (node: JsonNode): JsonNode => {
    if (node.kind === 'list') {
      const items = node.items.map(visit)
      return items.every((item, index) => item === node.items[index]) ? node : { kind: 'list', items }
    }
    if (node.kind !== 'object') return node
    const before = node.members
    const ruled = rule(before, strings)
    if (ruled === 'list') return { kind: 'list', items: asRead(before, strings).map(([, value]) => visit(value)) }
    const members = ruled.map(([key, value]): Member => [key, visit(value)])
    const isSame = members.every(([key, value], at) => key === before[at]?.[0] && value === before[at]?.[1])
    return isSame && members.length === before.length ? node : { kind: 'object', members }
  }
  return visit(root)
}

/** What differs between two bodies, field by field. */

import { childrenOf, type Json } from './json.ts'

/** A field that is not the same in two bodies. */
export interface Difference {
  /** `properties.products[0].name`; empty for the whole body. */
  readonly path: string
  /** Undefined: it has no such field. */
  readonly left: Json | undefined
  readonly right: Json | undefined
}

/**
 * Compares two values of JSON. Numbers are equal when they are written alike; the order of keys does not count.
 *
 * @param most How many differences are listed at most.
 */
export function findDifferences(left: Json, right: Json, most: number): readonly Difference[] {
  const found: Difference[] = []
  const pairs: Difference[] = [{ path: '', left, right }]
  for (let pair = pairs.pop(); pair !== undefined && found.length < most; pair = pairs.pop()) {
    const { left, right } = pair
    if (left?.kind === right?.kind && (left?.kind === 'object' || left?.kind === 'array')) {
      // The last is taken next: the fields are listed in their order.
      pairs.push(...pairsOf(pair).reverse())
    } else if (!isEqual(left, right)) {
      found.push(pair)
    }
  }
  return found
}

function pairsOf({ path, left, right }: Difference): Difference[] {
  const [lefts, rights] = [fieldsOf(left), fieldsOf(right)]
  const keys = new Set([...lefts.keys(), ...rights.keys()])
  return [...keys].map((key) => ({ path: pathOf(path, key), left: lefts.get(key), right: rights.get(key) }))
}

function fieldsOf(json: Json | undefined): ReadonlyMap<string | number, Json> {
  return new Map(json === undefined ? [] : childrenOf(json).map(({ key, value }) => [key, value]))
}

function pathOf(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`
  if (!/^[A-Za-z_$][\w$]*$/.test(key)) return `${parent}[${JSON.stringify(key)}]`
  return parent === '' ? key : `${parent}.${key}`
}

function isEqual(left: Json | undefined, right: Json | undefined): boolean {
  if (left?.kind === 'string') return right?.kind === 'string' && left.value === right.value
  return left?.kind === 'literal' && right?.kind === 'literal' && left.text === right.text
}

/** Parses and compares JSON without loss: numbers keep their digits, and objects keep the order of keys and repeated keys. */

export type Json =
  | { readonly kind: 'object'; readonly entries: readonly Entry[] }
  | { readonly kind: 'array'; readonly items: readonly Json[] }
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'literal'; readonly text: string }

interface Entry {
  readonly key: string
  readonly value: Json
}

type Open = { readonly kind: 'object'; readonly entries: Entry[] } | { readonly kind: 'array'; readonly items: Json[] }

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[-+.\w]+|[[\]{}]/g

/**
 * Parses JSON, nested to any depth.
 *
 * @throws SyntaxError if the text is not JSON.
 */
export function parseJson(text: string): Json {
  JSON.parse(text) // This checks the syntax. The rest of the function only finds where each token ends.
  const roots: Json[] = []
  const openNodes: Open[] = [{ kind: 'array', items: roots }]
  let key: string | undefined
  for (const [token] of text.matchAll(TOKEN)) {
    const parent = openNodes.at(-1) as Open
    if (token === '}' || token === ']') openNodes.pop()
    else if (parent.kind === 'object' && key === undefined) key = JSON.parse(token)
    else {
      const value = toJson(token)
      if (parent.kind === 'object') parent.entries.push({ key: key ?? '', value })
      else parent.items.push(value)
      key = undefined
      if (token === '{' || token === '[') openNodes.push(value as Open)
    }
  }
  return roots[0] as Json
}

function toJson(token: string): Json {
  if (token === '{') return { kind: 'object', entries: [] }
  if (token === '[') return { kind: 'array', items: [] }
  return token.startsWith('"') ? { kind: 'string', value: JSON.parse(token) } : { kind: 'literal', text: token }
}

export function sizeOf(json: Json): number {
  if (json.kind === 'object') return json.entries.length
  return json.kind === 'array' ? json.items.length : 0
}

/** Lists the values in an object or array with their keys. Returns an empty list for any other value. */
export function childrenOf(json: Json): readonly { readonly key: string | number; readonly value: Json }[] {
  if (json.kind === 'object') return json.entries
  return json.kind === 'array' ? json.items.map((value, key) => ({ key, value })) : []
}

export function excerptOf(json: Json, most = 80): string {
  if (json.kind === 'literal') return cut(json.text, most)
  if (json.kind === 'string') return JSON.stringify(cut(json.value, most))
  const [first, last] = json.kind === 'object' ? ['{', '}'] : ['[', ']']
  let text = ''
  for (const { key, value } of childrenOf(json)) {
    const name = typeof key === 'string' ? `${JSON.stringify(key)}: ` : ''
    const left = most - text.length - name.length
    if (left <= 0) return `${first}${text}${text === '' ? '' : ', '}…${last}`
    text += `${text === '' ? '' : ', '}${name}${excerptOf(value, Math.max(0, left - 4))}`
  }
  return `${first}${text}${last}`
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most)}…` : text
}

/** A field that differs between two bodies. */
export interface Difference {
  /** The path of the field, such as `properties.products[0].name`; empty for the whole body. */
  readonly path: string
  /** The value in the left body; undefined if the field is missing. */
  readonly left: Json | undefined
  /** The value in the right body; undefined if the field is missing. */
  readonly right: Json | undefined
}

/**
 * Compares two JSON values. Numbers are equal when they are written identically. The order of keys is ignored.
 *
 * @param most The maximum number of differences to list.
 */
export function findDifferences(left: Json, right: Json, most: number): readonly Difference[] {
  const found: Difference[] = []
  const pairs: Difference[] = [{ path: '', left, right }]
  for (let pair = pairs.pop(); pair !== undefined && found.length < most; pair = pairs.pop()) {
    const { left, right } = pair
    if (left?.kind === right?.kind && (left?.kind === 'object' || left?.kind === 'array')) {
      // Pairs are taken from the end, so adding them in reverse order lists the fields in order.
      for (const next of pairsOf(pair).reverse()) pairs.push(next)
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

/** Observes what the values of one field have in common. Keeps no value, except the few texts that may become an enum. */

import { ALL_FORMATS, findFormats, isData } from './texts.ts'

export const VALUE_TYPES = ['array', 'boolean', 'null', 'number', 'object', 'string'] as const
type ValueType = (typeof VALUE_TYPES)[number]

/** The observations of many values. They do not depend on the order of the values. */
export interface Observed {
  readonly counts: Record<ValueType, number>
  /** The formats that all texts have, as bits: see `texts.ts`. */
  formats: number
  /** The different texts; undefined when they cannot form an enum. */
  texts: Set<string> | undefined
  /** The keys of objects; undefined for a map, and until an object has a key. */
  properties: Map<string, Observed> | undefined
  /** Whether the keys of objects are data rather than names. */
  isMap: boolean
  /** The observations of the values in maps; undefined until a map has a value. */
  values: Observed | undefined
  /** The observations of the elements of arrays; undefined until an array has an element. */
  items: Observed | undefined
  /** Whether there were objects or arrays at a depth that is not examined. */
  isTooDeep: boolean
}

export interface Observations {
  /** Creates empty observations. Returns undefined when the maximum number is reached. */
  create(): Observed | undefined
  /** @param depth The number of names on the path to the value. */
  add(observed: Observed, value: unknown, depth: number): void
  /** Whether `create` has ever returned undefined. */
  readonly isFull: boolean
}

export const MAX_OBSERVED = 200_000
export const MAX_DEPTH = 10
/** The maximum number of keys of an object. An object with more keys is a map. */
export const MAX_KEYS = 100
const MAX_TEXTS = 10
const MAX_TEXT_LENGTH = 50

/** @param options.enums Whether to keep texts that may become an enum. */
export function createObservations({ enums }: { readonly enums: boolean }): Observations {
  let count = 0
  let isFull = false

  function create(): Observed | undefined {
    if (count === MAX_OBSERVED) {
      isFull = true
      return undefined
    }
    count += 1
    return {
      counts: { array: 0, boolean: 0, null: 0, number: 0, object: 0, string: 0 },
      formats: ALL_FORMATS,
      texts: enums ? new Set() : undefined,
      properties: undefined,
      isMap: false,
      values: undefined,
      items: undefined,
      isTooDeep: false,
    }
  }

  function add(observed: Observed, value: unknown, depth: number): void {
    const type = typeOf(value)
    observed.counts[type] += 1
    if (type === 'string') addText(observed, value as string)
    else if (type === 'object' || type === 'array') {
      if (depth === MAX_DEPTH) observed.isTooDeep = true
      else if (type === 'array') addItems(observed, value as unknown[], depth + 1)
      else addObject(observed, value as Record<string, unknown>, depth + 1)
    }
  }

  function addItems(observed: Observed, items: readonly unknown[], depth: number): void {
    for (const item of items) {
      observed.items ??= create()
      if (observed.items !== undefined) add(observed.items, item, depth)
    }
  }

  function addObject(observed: Observed, value: Readonly<Record<string, unknown>>, depth: number): void {
    for (const key of Object.keys(value)) {
      const property = findProperty(observed, key)
      if (property !== undefined) add(property, value[key], depth)
    }
  }

  function findProperty(observed: Observed, key: string): Observed | undefined {
    const known = observed.properties?.get(key)
    if (known !== undefined) return known
    if (!observed.isMap && (observed.properties?.size === MAX_KEYS || isData(key))) makeMap(observed)
    if (observed.isMap) {
      observed.values ??= create()
      return observed.values
    }
    const created = create()
    if (created === undefined) return undefined
    observed.properties ??= new Map()
    observed.properties.set(key, created)
    return created
  }

  function makeMap(observed: Observed): void {
    observed.isMap = true
    for (const property of observed.properties?.values() ?? []) observed.values = join(observed.values, property)
    observed.properties = undefined
  }

  /** Merges two observations and returns the result. Neither argument may be used afterwards. */
  function join(one: Observed | undefined, other: Observed | undefined): Observed | undefined {
    if (one === undefined || other === undefined) return one ?? other
    for (const type of VALUE_TYPES) one.counts[type] += other.counts[type]
    one.formats &= other.formats
    if (other.texts === undefined) one.texts = undefined
    for (const text of other.texts ?? []) addEnumText(one, text)
    one.isTooDeep ||= other.isTooDeep
    one.items = join(one.items, other.items)
    joinObjects(one, other)
    count -= 1
    return one
  }

  function joinObjects(one: Observed, other: Observed): void {
    if (other.isMap) makeMap(one)
    one.values = join(one.values, other.values)
    for (const [key, property] of other.properties ?? []) {
      const known = one.properties?.get(key)
      if (known === undefined && one.properties?.size === MAX_KEYS) makeMap(one)
      if (one.isMap) one.values = join(one.values, property)
      else if (known !== undefined) join(known, property)
      else {
        one.properties ??= new Map()
        one.properties.set(key, property)
      }
    }
  }

  return {
    create,
    add,
    get isFull() {
      return isFull
    },
  }
}

function typeOf(value: unknown): ValueType {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'array' : (typeof value as ValueType)
}

function addText(observed: Observed, text: string): void {
  if (observed.formats !== 0) observed.formats = findFormats(text, observed.formats)
  addEnumText(observed, text)
}

function addEnumText(observed: Observed, text: string): void {
  const { texts } = observed
  if (texts === undefined || texts.has(text)) return
  if (texts.size === MAX_TEXTS || text.length > MAX_TEXT_LENGTH || isData(text)) observed.texts = undefined
  else texts.add(text)
}

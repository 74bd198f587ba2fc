/** Rewrites a JSON Schema of draft 4 to 2020-12 as one of 2020-12 that refers to nothing. */

import { isObject } from '../../message/json.ts'
import { UsageError } from '../terminal.ts'
import type { JsonSchema } from './rule.ts'

/** So many schemas are within one, references included: more are an attack, or no tracking plan. */
const MAX_SCHEMAS = 200_000
/** Deeper ones are left out. */
const MAX_DEPTH = 50

const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas'])
const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const SINGLE: ReadonlySet<string> = new Set([
  ...['items', 'contains', 'additionalProperties', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties'],
  ...['not', 'if', 'then', 'else'],
])
/** What has no meaning once references are resolved. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  ...['$schema', '$id', 'id', '$anchor', '$vocabulary', '$defs', 'definitions', '$ref', 'additionalItems'],
  ...['dependencies', 'labels', 'eventMetadata'],
])

/** Adds a finding about the schema at a path: `items[].sku`, empty for the whole. */
export type AddFinding = (path: string, text: string) => void

/** @throws UsageError for a schema of unreasonable size. */
export function normalise(root: unknown, add: AddFinding): JsonSchema {
  const isOld = /draft-0[3-7]/.test(text(isObject(root) ? root.$schema : undefined) ?? 'draft-07')
  let count = 0

  function rewrite(schema: unknown, path: string, refs: readonly string[], depth: number): JsonSchema | boolean {
    count += 1
    if (count > MAX_SCHEMAS)
      throw new UsageError(`A schema must hold at most ${MAX_SCHEMAS} others, with those that it refers to. Got more.`)
    if (typeof schema === 'boolean') return schema
    if (!isObject(schema)) return give(path, 'is no JSON Schema')
    if (depth > MAX_DEPTH) return give(path, `is nested more than ${MAX_DEPTH} deep`)
    const ref = text(schema.$ref)
    const own = ref !== undefined && isOld ? {} : rewriteOwn(schema, path, refs, depth)
    if (ref === undefined) return own
    const target = resolve(ref, path, refs, depth)
    return Object.keys(own).length === 0 ? target : { allOf: [target, own] }
  }

  function resolve(ref: string, path: string, refs: readonly string[], depth: number): JsonSchema | boolean {
    if (refs.includes(ref)) return give(path, 'refers to itself')
    const target = find(root, ref)
    if (target === undefined) return give(path, `refers to ${ref}, which is not in the schema`)
    return rewrite(target, path, [...refs, ref], depth + 1)
  }

  function rewriteOwn(schema: JsonSchema, path: string, refs: readonly string[], depth: number): JsonSchema {
    const below = (each: unknown, at: string) => rewrite(each, at, refs, depth + 1)
    const entries = Object.entries(modernise(schema))
      .filter(([keyword]) => !LEFT_OUT.has(keyword))
      .map(([keyword, value]): [string, unknown] => {
        if (MAPS.has(keyword) && isObject(value)) {
          const within = Object.entries(value).map(([name, each]) => [name, below(each, join(path, name))] as const)
          return [keyword, Object.fromEntries(within)]
        }
        if (LISTS.has(keyword) && Array.isArray(value)) return [keyword, value.map((each) => below(each, path))]
        if (keyword === 'items') return [keyword, below(value, `${path}[]`)]
        return [keyword, SINGLE.has(keyword) ? below(value, path) : value]
      })
    return Object.fromEntries(entries)
  }

  function give(path: string, fault: string): JsonSchema {
    add(path, `${fault}: any value is accepted`)
    return {}
  }

  const rewritten = rewrite(root, '', [], 0)
  return typeof rewritten === 'boolean' ? { allOf: [rewritten] } : rewritten
}

/** The path of a property. */
export function join(path: string, name: string): string {
  const shown = name === '' ? "''" : name
  return path === '' ? shown : `${path}.${shown}`
}

/** Its keywords, as those of 2020-12. Drafts that share a name for two meanings are told apart by the value. */
function modernise({ dependencies, additionalItems, ...schema }: JsonSchema): JsonSchema {
  const modern: Record<string, unknown> = { ...schema }
  if ([modern.type].flat().includes('any')) delete modern.type // Plans of Segment have this type.
  for (const [limit, exclusive] of EXCLUSIVE) {
    if (typeof modern[exclusive] !== 'boolean') continue
    const isExclusive = modern[exclusive] && limit in modern
    Object.assign(modern, { [exclusive]: isExclusive ? modern[limit] : undefined })
    delete modern[isExclusive ? limit : exclusive]
  }
  if (Array.isArray(modern.items)) {
    Object.assign(modern, { prefixItems: modern.items, items: additionalItems ?? true })
  }
  if (isObject(dependencies)) {
    const [lists, schemas] = [[], []] as [string, unknown][][]
    for (const entry of Object.entries(dependencies)) (Array.isArray(entry[1]) ? lists : schemas)?.push(entry)
    if (lists?.length) Object.assign(modern, { dependentRequired: Object.fromEntries(lists) })
    if (schemas?.length) Object.assign(modern, { dependentSchemas: Object.fromEntries(schemas) })
  }
  return modern
}

const EXCLUSIVE = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const

/** Follows a JSON pointer, `#/$defs/address`, or finds an anchor, `#address`. */
function find(root: unknown, ref: string): unknown {
  if (!ref.startsWith('#')) return undefined
  if (!/^#(\/|$)/.test(ref)) return findAnchor(root, ref.slice(1))
  let found = root
  for (const part of ref.split('/').slice(1)) {
    const name = decode(part).replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined
    found = (found as Record<string, unknown>)[name]
  }
  return found
}

function findAnchor(root: unknown, anchor: string): unknown {
  const { $defs, definitions } = isObject(root) ? root : {}
  return [$defs, definitions]
    .flatMap((each) => (isObject(each) ? Object.values(each) : []))
    .find(
      (each) => isObject(each) && (each.$anchor === anchor || each.$id === `#${anchor}` || each.id === `#${anchor}`),
    )
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

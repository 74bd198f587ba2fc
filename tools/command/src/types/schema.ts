/** Converts a JSON Schema of any draft from 4 to 2020-12 into one of 2020-12 without references. */

import { isObject } from '../../../json.ts'
import { UsageError } from '../terminal.ts'
import type { AddPathFinding, JsonSchema } from './rule.ts'

/** The maximum number of schemas that one schema may contain or refer to. A schema with more is an attack, or not a tracking plan. */
const MAX_SCHEMAS = 5_000
/** The maximum depth of nested schemas. In place of a deeper schema, any value is accepted. */
const MAX_DEPTH = 50

const MAPS: ReadonlySet<string> = new Set(['properties', 'patternProperties', 'dependentSchemas'])
const LISTS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems'])
const SINGLE: ReadonlySet<string> = new Set([
  ...['items', 'contains', 'additionalProperties', 'propertyNames', 'unevaluatedItems', 'unevaluatedProperties'],
  ...['not', 'if', 'then', 'else'],
])
const TYPES: ReadonlySet<unknown> = new Set(['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'])

/** The other keywords, each with a test of its value. Keywords that are not listed at all are ignored. */
const VALUES: Readonly<Record<string, (value: unknown) => boolean>> = {
  type: (value) => [value].flat().length > 0 && [value].flat().every((type) => TYPES.has(type)),
  enum: (value) => Array.isArray(value) && value.length > 0 && !value.some(Number.isNaN),
  const: () => true,
  required: isTexts,
  dependentRequired: (value) => isObject(value) && Object.values(value).every(isTexts),
  pattern: isPattern,
  uniqueItems: (value) => typeof value === 'boolean',
  multipleOf: (value) => Number.isFinite(value) && Number(value) > 0,
  ...forEach('minimum maximum exclusiveMinimum exclusiveMaximum', Number.isFinite),
  ...forEach('minLength maxLength minItems maxItems minProperties maxProperties minContains maxContains', isCount),
  ...forEach('title description format $comment deprecated', () => true),
}

/**
 * Keywords to drop entirely if a part of their value is unsupported, because without that part they could refuse valid
 * values. Each list names the other keywords to drop together with its keyword.
 */
const INVERTED: Readonly<Record<string, readonly string[]>> = {
  not: [],
  oneOf: [],
  if: ['then', 'else'],
  contains: ['minContains', 'maxContains'],
}

/** @throws UsageError for a schema that is too large. */
export function normalise(root: unknown, addFinding: AddPathFinding): JsonSchema {
  const { $schema, $defs } = isObject(root) ? root : {}
  const isOld = /draft-0[3-7]/.test(text($schema) ?? ($defs === undefined ? 'draft-07' : ''))
  let count = 0
  let givenUp = 0

  function rewrite(schema: unknown, path: string, refs: readonly string[], depth: number): JsonSchema | boolean {
    count += 1
    if (count > MAX_SCHEMAS) {
      throw new UsageError(
        `The schema of an event must contain at most ${MAX_SCHEMAS} schemas, including those that it refers to. Simplify the schema.`,
      )
    }
    if (typeof schema === 'boolean') return schema
    if (!isObject(schema)) return giveUp(path, 'is not a JSON Schema')
    if (depth > MAX_DEPTH) return giveUp(path, `is nested more than ${MAX_DEPTH} levels deep`)
    if ('$recursiveRef' in schema || '$dynamicRef' in schema) return giveUp(path, 'has a dynamic reference')
    const { $ref, ...others } = schema
    const ref = text($ref)
    if (ref === undefined) return rewriteOwn(schema, path, refs, depth)
    const target = resolve(ref, path, refs, depth)
    const own = rewriteOwn(others, path, refs, depth)
    if (Object.keys(own).length === 0) return target
    if (!isOld) return { ...own, allOf: [target, ...((own.allOf as JsonSchema[] | undefined) ?? [])] }
    const ignored = Object.keys(own).filter((keyword) => !ANNOTATIONS.has(keyword))
    if (ignored.length > 0)
      addFinding(path, `${listed(ignored)} beside \`$ref\` has no meaning before 2019-09: it is left out`)
    return target
  }

  function resolve(ref: string, path: string, refs: readonly string[], depth: number): JsonSchema | boolean {
    if (refs.includes(ref)) return giveUp(path, 'refers to itself')
    const target = find(root, ref)
    if (target === undefined) return giveUp(path, `refers to ${ref}, which is not in the schema`)
    return rewrite(target, path, [...refs, ref], depth + 1)
  }

  function rewriteOwn(given: JsonSchema, path: string, refs: readonly string[], depth: number): JsonSchema {
    const schema = modernise(given)
    const faulty = Object.keys(schema).find((keyword) => !isValid(keyword, schema[keyword]))
    if (faulty !== undefined) return giveUp(path, `has an invalid \`${faulty}\``)
    const below = (each: unknown, at = path) => rewrite(each, at, refs, depth + 1)
    const rewritten = new Map<string, unknown>()
    const dropped: string[] = []
    for (const [keyword, value] of Object.entries(schema)) {
      const before = givenUp
      if (MAPS.has(keyword)) {
        const entries = Object.entries(value as JsonSchema).filter(([name, each]) => !isMisplaced(name, each, path))
        const within = entries.map(([name, each]) => [name, below(each, join(path, name))])
        rewritten.set(keyword, Object.fromEntries(within))
      } else if (LISTS.has(keyword))
        rewritten.set(
          keyword,
          (value as unknown[]).map((each) => below(each)),
        )
      else if (SINGLE.has(keyword)) rewritten.set(keyword, below(value, keyword === 'items' ? `${path}[]` : path))
      else if (Object.hasOwn(VALUES, keyword)) rewritten.set(keyword, value)
      if (givenUp > before && Object.hasOwn(INVERTED, keyword)) dropped.push(keyword, ...(INVERTED[keyword] ?? []))
    }
    for (const keyword of dropped) rewritten.delete(keyword)
    if (dropped.length > 0) addFinding(path, `${listed(dropped)} with an unsupported part is left out`)
    return Object.fromEntries(rewritten)
  }

  /** Returns whether a property is a misplaced keyword `required`, which has no effect in `properties`. If so, reports it. */
  function isMisplaced(name: string, value: unknown, path: string): boolean {
    if (name !== 'required' || !isTexts(value)) return false
    addFinding(path, 'has `required` within `properties`: it is left out')
    return true
  }

  function giveUp(path: string, fault: string): JsonSchema {
    givenUp += 1
    addFinding(path, `${fault}: any value is accepted`)
    return {}
  }

  const rewritten = rewrite(root, '', [], 0)
  return typeof rewritten === 'boolean' ? { allOf: [rewritten] } : rewritten
}

const ANNOTATIONS: ReadonlySet<string> = new Set(['title', 'description', 'format', '$comment', 'deprecated'])

function isValid(keyword: string, value: unknown): boolean {
  if (MAPS.has(keyword)) return isObject(value)
  if (LISTS.has(keyword)) return Array.isArray(value) && value.length > 0
  return !Object.hasOwn(VALUES, keyword) || VALUES[keyword]?.(value) === true
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string')
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isPattern(value: unknown): boolean {
  try {
    return typeof value === 'string' && new RegExp(value, 'u') !== undefined
  } catch {
    return false
  }
}

function forEach(keywords: string, isValue: (value: unknown) => boolean) {
  return Object.fromEntries(keywords.split(' ').map((keyword) => [keyword, isValue]))
}

function listed(keywords: readonly string[]): string {
  return keywords.map((keyword) => `\`${keyword}\``).join(', ')
}

/** Returns the path of a property, such as `items[].sku`. An empty name becomes `''`. */
export function join(path: string, name: string): string {
  const shown = name === '' ? "''" : name
  return path === '' ? shown : `${path}.${shown}`
}

/** Converts keywords to those of 2020-12. If drafts use one name with two meanings, the value decides. */
function modernise({ dependencies, additionalItems, nullable, ...schema }: JsonSchema): JsonSchema {
  const modern: Record<string, unknown> = { ...schema }
  if ([modern.type].flat().includes('any')) delete modern.type // Segment plans use this type.
  if (nullable === true && modern.type !== undefined) modern.type = [modern.type, 'null'].flat()
  for (const [limit, exclusive] of EXCLUSIVE) {
    if (typeof modern[exclusive] !== 'boolean') continue
    if (modern[exclusive] && limit in modern) {
      modern[exclusive] = modern[limit]
      delete modern[limit]
    } else delete modern[exclusive]
  }
  if (Array.isArray(modern.items)) Object.assign(modern, { prefixItems: modern.items, items: additionalItems ?? true })
  if (!isObject(dependencies)) return modern
  const [lists, schemas] = [true, false].map((isList) => {
    return Object.entries(dependencies).filter(([, value]) => Array.isArray(value) === isList)
  })
  if (lists?.length) modern.dependentRequired = Object.fromEntries(lists)
  if (schemas?.length) modern.dependentSchemas = Object.fromEntries(schemas)
  return modern
}

const EXCLUSIVE = [
  ['minimum', 'exclusiveMinimum'],
  ['maximum', 'exclusiveMaximum'],
] as const

/** Resolves a JSON pointer, such as `#/$defs/address`, or an anchor, such as `#address`. */
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

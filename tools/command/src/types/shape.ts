/** Describes the values that a JSON Schema accepts. Whatever a schema library cannot express is reported and becomes `unknown`. */

import { createAjv } from './ajv.ts'
import type { AddPathFinding, JsonSchema } from './rule.ts'
import { join, text } from './schema.ts'

export type Shape =
  | { readonly kind: 'unknown' | 'never' | 'null' | 'boolean' }
  | (Size & { readonly kind: 'string'; readonly pattern: RegExp | undefined })
  | NumberShape
  | { readonly kind: 'literals'; readonly values: readonly Literal[] }
  | (Size & { readonly kind: 'array'; readonly items: Shape; readonly isUnique: boolean })
  | ObjectShape
  /** `accepts` says how many parts may match. It is `exactly one` only if the parts may overlap. */
  | { readonly kind: 'union'; readonly parts: readonly Shape[]; readonly accepts: 'any' | 'exactly one' }
  | { readonly kind: 'intersection'; readonly parts: readonly Shape[] }

interface Size {
  readonly min: number
  readonly max: number | undefined
}

export interface NumberShape {
  readonly kind: 'number'
  readonly isInteger: boolean
  readonly min: number | undefined
  readonly max: number | undefined
  readonly above: number | undefined
  readonly below: number | undefined
  readonly multipleOf: number | undefined
}

export interface ObjectShape {
  readonly kind: 'object'
  readonly properties: readonly Property[]
  /** The treatment of other properties: they are dropped, refused, or must have this shape. */
  readonly rest: 'dropped' | 'refused' | Shape
}

export interface Property {
  readonly name: string
  readonly isOptional: boolean
  readonly shape: Shape
  /** The paragraphs of the property's doc comment. */
  readonly doc: readonly string[]
}

type Literal = string | number | boolean

/** The features that a schema library can express. */
export interface Limits {
  /** Whether the library has a union of which exactly one part may match. */
  readonly hasXor: boolean
  /** Whether the library's `multipleOf` uses decimal arithmetic. In binary floating point, 19.99 is not a multiple of 0.01. */
  readonly hasDecimals: boolean
}

const UNKNOWN: Shape = { kind: 'unknown' }
const NEVER: Shape = { kind: 'never' }

const UNSUPPORTED = [
  ...['not', 'if', 'patternProperties', 'propertyNames', 'minProperties', 'maxProperties', 'dependentRequired'],
  ...['dependentSchemas', 'prefixItems', 'contains', 'unevaluatedItems', 'unevaluatedProperties'],
]

type Type = 'null' | 'boolean' | 'integer' | 'number' | 'string' | 'array' | 'object'

/** Keywords that apply to values of one type only. */
const TYPED = [
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'],
  ...['minLength', 'maxLength', 'pattern', 'items', 'minItems', 'maxItems', 'uniqueItems'],
  ...['properties', 'required', 'additionalProperties'],
]

/** Reads a schema of properties or traits. The shape accepts only objects. */
export function readShape(schema: JsonSchema, limits: Limits, addFinding: AddPathFinding): Shape {
  let givenUp = 0
  const whole = readPart(schema, '', ['object'])
  if (whole.kind === 'never') addFinding('', 'accepts no message')
  return whole

  /** @param types The types that the enclosing schema allows; undefined for all. */
  function readPart(schema: JsonSchema | boolean, path: string, types?: readonly Type[]): Shape {
    if (schema === true) return types === undefined ? UNKNOWN : ofTypes({}, path, types)
    if (schema === false) return NEVER
    const own = typesOf(schema)
    const allowed = [types, own, ...listOf(schema.allOf).map(typesOf)].reduce(intersect)
    const values = 'const' in schema ? [schema.const] : schema.enum
    if (Array.isArray(values)) {
      if (!values.every(isPrimitive)) return giveUp(path, '`enum` with lists or objects')
      return literals(values.filter(acceptedBy(schema, allowed)))
    }
    const unsupported = UNSUPPORTED.filter((keyword) => keyword in schema)
    if (unsupported.length > 0) return giveUp(path, unsupported.map((each) => `\`${each}\``).join(', '))
    const typed = TYPED.filter((keyword) => keyword in schema)
    if (allowed === undefined && typed.length > 0) return giveUp(path, `\`${typed[0]}\` without \`type\``)
    const { anyOf, oneOf } = schema
    const readAll = (list: unknown): Shape[] => listOf(list).map((each) => readPart(each, path, allowed))
    const parts = readAll(schema.allOf)
    if (Array.isArray(anyOf)) parts.push(union(readAll(anyOf)))
    if (Array.isArray(oneOf)) {
      const before = givenUp
      const each = readAll(oneOf)
      // An unsupported part would accept any value, so two parts could match.
      if (givenUp > before) return giveUp(path, '`oneOf` with an unsupported part')
      parts.push(exclusive(each, path))
    }
    if (parts.length === 0 || typed.length > 0) {
      parts.unshift(allowed === undefined ? UNKNOWN : ofTypes(schema, path, allowed))
    }
    const both = intersection(parts)
    // If one part of an intersection accepts a key, zod accepts it, even when another part refuses it.
    if (both.kind === 'intersection' && both.parts.some(refusesOthers)) {
      return giveUp(path, '`additionalProperties: false` beside `allOf`, `anyOf` or `oneOf`')
    }
    return both
  }

  function ofTypes(schema: JsonSchema, path: string, types: readonly Type[]): Shape {
    return union(types.map((type) => ofType(schema, path, type)))
  }

  function ofType(schema: JsonSchema, path: string, type: Type): Shape {
    if (type === 'string' || type === 'array') {
      const { min, max } =
        type === 'string' ? sizeOf(schema.minLength, schema.maxLength) : sizeOf(schema.minItems, schema.maxItems)
      if (max !== undefined && min > max) return NEVER
      return type === 'string' ? stringOf(schema, { min, max }) : arrayOf(schema, { min, max }, path)
    }
    if (type === 'object') return objectOf(schema, path)
    return type === 'number' || type === 'integer' ? numberOf(schema, path, type === 'integer') : { kind: type }
  }

  function stringOf({ pattern }: JsonSchema, size: Size): Shape {
    return { kind: 'string', ...size, pattern: typeof pattern === 'string' ? new RegExp(pattern, 'u') : undefined }
  }

  function numberOf(schema: JsonSchema, path: string, isInteger: boolean): Shape {
    const multipleOf = number(schema.multipleOf)
    if (multipleOf !== undefined && !Number.isInteger(multipleOf) && !limits.hasDecimals) {
      return giveUp(path, `\`multipleOf\` ${multipleOf}`)
    }
    const [min, max] = [number(schema.minimum), number(schema.maximum)]
    const [above, below] = [number(schema.exclusiveMinimum), number(schema.exclusiveMaximum)]
    return { kind: 'number', isInteger, min, max, above, below, multipleOf }
  }

  function arrayOf({ items = true, uniqueItems }: JsonSchema, size: Size, path: string): Shape {
    const shape = readPart(items as JsonSchema, `${path}[]`)
    const isUnique = uniqueItems === true
    if (isUnique && kindsOf(shape).some((kind) => kind === 'array' || kind === 'object')) {
      return giveUp(path, '`uniqueItems` of lists or objects')
    }
    return { kind: 'array', items: shape, ...size, isUnique }
  }

  function objectOf(schema: JsonSchema, path: string): Shape {
    const others = (schema.additionalProperties ?? true) as JsonSchema | boolean
    const declared = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema | boolean>>
    const required = new Set((schema.required ?? []) as readonly string[])
    const names = [...new Set([...Object.keys(declared), ...required])].sort()
    const inherited = names.filter((name) => name in Object.prototype)
    if (inherited.length > 0 && others !== true) return giveUp(path, `a property named \`${inherited[0]}\``)
    for (const name of inherited) {
      givenUp += 1
      addFinding(join(path, name), 'is left out: every JavaScript object has a property of this name')
    }
    const properties = names
      .filter((name) => !inherited.includes(name))
      .map((name): Property => {
        const own = Object.hasOwn(declared, name) ? (declared[name] as JsonSchema | boolean) : others
        const doc = docOf(own)
        return { name, isOptional: !required.has(name), shape: readPart(own, join(path, name)), doc }
      })
    if (properties.some(({ isOptional, shape }) => !isOptional && shape.kind === 'never')) return NEVER
    const shape = readPart(others, `${path}.*`)
    const isOpen = others === true && properties.length > 0
    return { kind: 'object', properties, rest: isOpen ? 'dropped' : shape.kind === 'never' ? 'refused' : shape }
  }

  /** Combines parts of which exactly one may match. A plain union is enough if no two parts can match the same value. */
  function exclusive(parts: readonly Shape[], path: string): Shape {
    const kinds = parts.map(kindsOf)
    const isDisjoint = kinds.flat().length === new Set(kinds.flat()).size
    if (isDisjoint) return union(parts)
    return limits.hasXor ? { kind: 'union', parts, accepts: 'exactly one' } : giveUp(path, '`oneOf`')
  }

  function giveUp(path: string, what: string): Shape {
    givenUp += 1
    addFinding(path, `${what} is not supported: any value is accepted`)
    return UNKNOWN
  }
}

/** Returns the paragraphs of the doc comment for a schema. */
export function docOf(schema: JsonSchema | boolean): string[] {
  if (typeof schema === 'boolean') return []
  const { title, description, format, deprecated, $comment } = schema
  const formatted = text(format) === undefined ? undefined : `Format: ${format}.`
  const paragraphs = [text(description) ?? text(title), formatted, text($comment), deprecated === true && '@deprecated']
  return paragraphs.filter((each) => typeof each === 'string' && each.trim() !== '') as string[]
}

/** Returns the types that a schema allows; undefined for all. Leaves out `integer` if `number` includes it. */
function typesOf(schema: JsonSchema | boolean): readonly Type[] | undefined {
  const { type } = typeof schema === 'boolean' ? {} : schema
  const types = type === undefined ? undefined : ([type].flat() as Type[])
  return types?.includes('number') ? types.filter((each) => each !== 'integer') : types
}

/** Returns the types that are in both lists; undefined stands for all types. An integer is also a number. */
function intersect(one: readonly Type[] | undefined, other: readonly Type[] | undefined): readonly Type[] | undefined {
  if (one === undefined || other === undefined) return one ?? other
  const both = one.flatMap((type) => {
    if (other.includes(type)) return [type]
    if (type === 'number' && other.includes('integer')) return ['integer' as const]
    return type === 'integer' && other.includes('number') ? [type] : []
  })
  return [...new Set(both)]
}

function isPrimitive(value: unknown): value is Literal | null {
  return value === null || typeof value !== 'object'
}

/** Returns a function that tests whether the other keywords of a schema accept a value of its `enum` or `const`. */
function acceptedBy(schema: JsonSchema, types: readonly Type[] | undefined): (value: Literal | null) => boolean {
  const isOfType = (value: Literal | null): boolean => {
    if (types === undefined) return true
    const type = value === null ? 'null' : (typeof value as Type)
    return types.includes(type) || (Number.isInteger(value) && types.includes('integer'))
  }
  const { const: _, ...others } = schema
  const rest = 'enum' in schema ? schema : others
  if (Object.keys(rest).every((keyword) => HARMLESS.has(keyword))) return isOfType
  const validate = createAjv().compile(schema)
  return (value) => isOfType(value) && validate(value) === true
}

/** Keywords that do not restrict the values of an `enum`, or are checked separately. */
const HARMLESS = new Set('enum type title description format $comment deprecated'.split(' '))

function sizeOf(min: unknown, max: unknown): Size {
  return { min: number(min) ?? 0, max: number(max) }
}

function literals(values: readonly (Literal | null)[]): Shape {
  const others = [...new Set(values)].filter((value) => value !== null)
  const parts: Shape[] = others.length === 0 ? [] : [{ kind: 'literals', values: others }]
  return union(others.length < new Set(values).size ? [...parts, { kind: 'null' }] : parts)
}

function union(parts: readonly Shape[]): Shape {
  const flat = parts.flatMap((part) => (part.kind === 'union' && part.accepts === 'any' ? part.parts : [part]))
  const found = flat.filter(({ kind }) => kind !== 'never')
  if (found.some(({ kind }) => kind === 'unknown')) return UNKNOWN
  const distinct = [...new Map(found.map((part) => [JSON.stringify(part, regExps), part])).values()]
  return distinct.length > 1 ? { kind: 'union', parts: distinct, accepts: 'any' } : (distinct[0] ?? NEVER)
}

function intersection(parts: readonly Shape[]): Shape {
  const found = parts.filter(({ kind }) => kind !== 'unknown')
  if (found.some(({ kind }) => kind === 'never')) return NEVER
  return found.length > 1 ? { kind: 'intersection', parts: found } : (found[0] ?? UNKNOWN)
}

function refusesOthers(shape: Shape): boolean {
  if (shape.kind === 'object') return shape.rest === 'refused'
  return shape.kind === 'union' && shape.parts.some(refusesOthers)
}

function regExps(_key: string, value: unknown): unknown {
  return value instanceof RegExp ? String(value) : value
}

/** Returns the shape without null; undefined when the shape is not a union with null. */
export function withoutNull(shape: Shape): Shape | undefined {
  if (shape.kind !== 'union' || shape.accepts !== 'any') return undefined
  const others = shape.parts.filter(({ kind }) => kind !== 'null')
  return others.length < shape.parts.length ? union(others) : undefined
}

/** Returns the JSON types that a shape may accept. */
function kindsOf(shape: Shape): readonly string[] {
  switch (shape.kind) {
    case 'unknown':
      return ['null', 'boolean', 'number', 'string', 'array', 'object']
    case 'never':
      return []
    case 'literals':
      return [...new Set(shape.values.map((value) => typeof value))]
    case 'union':
      return [...new Set(shape.parts.flatMap(kindsOf))]
    case 'intersection':
      return shape.parts.map(kindsOf).reduce((all, each) => all.filter((kind) => each.includes(kind)))
    default:
      return [shape.kind]
  }
}

function listOf(value: unknown): readonly (JsonSchema | boolean)[] {
  return Array.isArray(value) ? value : []
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}

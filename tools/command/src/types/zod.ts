/** Writes shapes as zod 4 code. */

import { bracket, charsOf, comment, keyOf, literalOf, regExpOf } from './code.ts'
import { type Limits, type NumberShape, type ObjectShape, type Property, type Shape, withoutNull } from './shape.ts'

export const zodLimits: Limits = { hasXor: true, hasDecimals: true }

export function toZod(shape: Shape, indent: string): string {
  switch (shape.kind) {
    case 'string':
      return `z.string()${lengthOf(shape.min, shape.max)}${shape.pattern ? `.regex(${regExpOf(shape.pattern)})` : ''}`
    case 'number':
      return numberOf(shape)
    case 'literals': {
      const [first, ...others] = shape.values.map(literalOf)
      if (others.length === 0) return `z.literal(${first})`
      const opening = shape.values.every((value) => typeof value === 'string') ? 'z.enum([' : 'z.literal(['
      return bracket(opening, [`${first}`, ...others], '])', indent)
    }
    case 'array': {
      const { items, min, max, isUnique } = shape
      const limits = `${min > 0 ? `.min(${min})` : ''}${max === undefined ? '' : `.max(${max})`}`
      return `z.array(${toZod(items, indent)})${limits}${isUnique ? '.refine((items) => new Set(items).size === items.length)' : ''}`
    }
    case 'object':
      return objectOf(shape, indent)
    case 'union':
      return unionOf(shape, indent)
    case 'intersection':
      return shape.parts.map((part) => toZod(part, indent)).reduce((all, each) => `${all}.and(${each})`)
    default:
      return `z.${shape.kind}()`
  }
}

/** Writes a check of the length of a text. zod counts UTF-16 units, so its own check is used only to refuse an empty text. */
function lengthOf(min: number, max: number | undefined): string {
  if (max === undefined && min < 2) return min === 1 ? '.min(1)' : ''
  return `.regex(${charsOf(min, max)})`
}

function numberOf({ isInteger, min, max, above, below, multipleOf }: NumberShape): string {
  const checks = Object.entries({ min, max, gt: above, lt: below, multipleOf })
  const calls = checks.map(([name, value]) => (value === undefined ? '' : `.${name}(${value})`))
  return `z.${isInteger ? 'int' : 'number'}()${calls.join('')}`
}

function objectOf({ properties, rest }: ObjectShape, indent: string): string {
  if (properties.length === 0 && typeof rest === 'object') {
    return rest.kind === 'unknown' ? 'z.looseObject({})' : `z.record(z.string(), ${toZod(rest, indent)})`
  }
  const members = properties.map((property) => memberOf(property, `${indent}  `)).join('')
  const body = members === '' ? '{}' : `{\n${members}${indent}}`
  if (typeof rest === 'object') return `z.object(${body}).catchall(${toZod(rest, indent)})`
  return `z.${rest === 'refused' ? 'strictObject' : 'object'}(${body})`
}

function memberOf({ name, isOptional, shape, doc }: Property, indent: string): string {
  const inner = isOptional ? withoutNull(shape) : undefined
  const code = inner === undefined ? toZod(shape, indent) : `${toZod(inner, indent)}.nullish()`
  return `${comment(doc, indent)}${indent}${keyOf(name)}: ${code}${isOptional && inner === undefined ? '.optional()' : ''},\n`
}

function unionOf(shape: Extract<Shape, { kind: 'union' }>, indent: string): string {
  const inner = withoutNull(shape)
  if (inner !== undefined) return `${toZod(inner, indent)}.nullable()`
  const codes = shape.parts.map((part) => toZod(part, `${indent}  `))
  return bracket(shape.accepts === 'any' ? 'z.union([' : 'z.xor([', codes, '])', indent)
}

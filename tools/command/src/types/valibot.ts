/** Writes shapes as valibot code. */

import { bracket, charsOf, comment, keyOf, literalOf, quote, regExpOf } from './code.ts'
import { type Limits, type NumberShape, type ObjectShape, type Property, type Shape, withoutNull } from './shape.ts'

export const valibotLimits: Limits = { hasXor: false, hasDecimals: false }

/** @param isPart Whether the shape is part of a union. Objects in a union must refuse lists, which could match another part. */
export function toValibot(shape: Shape, indent: string, isPart = false): string {
  switch (shape.kind) {
    case 'string':
      return pipe('v.string()', [
        ...lengthOf(shape.min, shape.max),
        ...(shape.pattern ? [`v.regex(${regExpOf(shape.pattern)})`] : []),
      ])
    case 'number':
      return numberOf(shape)
    case 'literals':
      return literalsOf(shape.values, indent)
    case 'array': {
      const { items, min, max, isUnique } = shape
      return pipe(`v.array(${toValibot(items, indent, isPart)})`, [
        ...(min > 0 ? [`v.minLength(${min})`] : []),
        ...(max === undefined ? [] : [`v.maxLength(${max})`]),
        ...(isUnique ? ['v.check((items) => new Set(items).size === items.length)'] : []),
      ])
    }
    case 'object': {
      const code = objectOf(shape, indent, isPart)
      return isPart ? `v.pipe(${NO_LIST}, ${code})` : code
    }
    case 'union': {
      const inner = withoutNull(shape)
      if (inner !== undefined) return `v.nullable(${toValibot(inner, indent, isPart)})`
      const codes = shape.parts.map((part) => toValibot(part, `${indent}  `, true))
      return bracket('v.union([', codes, '])', indent)
    }
    case 'intersection':
      return bracket(
        'v.intersect([',
        shape.parts.map((part) => toValibot(part, `${indent}  `, isPart)),
        '])',
        indent,
      )
    default:
      return `v.${shape.kind}()`
  }
}

/** Refuses lists, which valibot's object schemas accept and convert. */
const NO_LIST = 'v.custom((value) => !Array.isArray(value))'

function pipe(schema: string, actions: readonly string[]): string {
  return actions.length === 0 ? schema : `v.pipe(${[schema, ...actions].join(', ')})`
}

/** Writes checks of the length of a text. valibot counts UTF-16 units, so its own check is used only to refuse an empty text. */
function lengthOf(min: number, max: number | undefined): string[] {
  if (max === undefined && min < 2) return min === 1 ? ['v.nonEmpty()'] : []
  return [`v.regex(${charsOf(min, max)})`]
}

function numberOf({ isInteger, min, max, above, below, multipleOf }: NumberShape): string {
  const checks = Object.entries({ minValue: min, maxValue: max, gtValue: above, ltValue: below, multipleOf })
  const calls = checks.flatMap(([name, value]) => (value === undefined ? [] : [`v.${name}(${value})`]))
  return pipe('v.number()', [...(isInteger ? ['v.safeInteger()'] : []), ...calls])
}

function literalsOf(values: Extract<Shape, { kind: 'literals' }>['values'], indent: string): string {
  const texts = values.filter((value) => typeof value === 'string')
  if (texts.length === values.length) return bracket('v.picklist([', texts.map(quote), '])', indent)
  const codes = values.map((value) => `v.literal(${literalOf(value)})`)
  return codes.length === 1 ? `${codes[0]}` : bracket('v.union([', codes, '])', indent)
}

function objectOf({ properties, rest }: ObjectShape, indent: string, isPart: boolean): string {
  if (properties.length === 0 && typeof rest === 'object') {
    return rest.kind === 'unknown' ? 'v.looseObject({})' : `v.record(v.string(), ${toValibot(rest, indent, isPart)})`
  }
  const members = properties.map((property) => memberOf(property, `${indent}  `, isPart)).join('')
  const body = members === '' ? '{}' : `{\n${members}${indent}}`
  if (typeof rest === 'object') return `v.objectWithRest(${body}, ${toValibot(rest, indent, isPart)})`
  return `v.${rest === 'refused' ? 'strictObject' : 'object'}(${body})`
}

function memberOf({ name, isOptional, shape, doc }: Property, indent: string, isPart: boolean): string {
  const inner = isOptional ? withoutNull(shape) : undefined
  const code = toValibot(inner ?? shape, indent, isPart)
  const optional = !isOptional ? code : `v.${inner === undefined ? 'optional' : 'nullish'}(${code})`
  return `${comment(doc, indent)}${indent}${keyOf(name)}: ${optional},\n`
}

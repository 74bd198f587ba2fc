/** Writes shapes as TypeScript types. The types check nothing at run time. */

import { comment, keyOf, literalOf } from './code.ts'
import type { Limits, ObjectShape, Property, Shape } from './shape.ts'

export const typescriptLimits: Limits = { hasXor: true, hasDecimals: true }

export function toTypeScript(shape: Shape, indent: string): string {
  switch (shape.kind) {
    case 'literals':
      return shape.values.map(literalOf).join(' | ')
    case 'array': {
      const items = toTypeScript(shape.items, indent)
      return isCompound(shape.items) ? `(${items})[]` : `${items}[]`
    }
    case 'object':
      return objectOf(shape, indent)
    case 'union':
      return shape.parts.map((part) => partOf(part, indent)).join(' | ')
    case 'intersection':
      return shape.parts.map((part) => partOf(part, indent)).join(' & ')
    default:
      return shape.kind
  }
}

function partOf(shape: Shape, indent: string): string {
  return isCompound(shape) && shape.kind !== 'literals'
    ? `(${toTypeScript(shape, indent)})`
    : toTypeScript(shape, indent)
}

function isCompound(shape: Shape): boolean {
  return (
    shape.kind === 'union' || shape.kind === 'intersection' || (shape.kind === 'literals' && shape.values.length > 1)
  )
}

function objectOf({ properties, rest }: ObjectShape, indent: string): string {
  if (properties.length === 0)
    return `Record<string, ${typeof rest === 'object' ? toTypeScript(rest, indent) : 'never'}>`
  // The type is `unknown`, because a TypeScript index signature also applies to the declared properties.
  const others = typeof rest === 'object' ? `${indent}  [name: string]: unknown\n` : ''
  return `{\n${properties.map((property) => memberOf(property, `${indent}  `)).join('')}${others}${indent}}`
}

function memberOf({ name, isOptional, shape, doc }: Property, indent: string): string {
  return `${comment(doc, indent)}${indent}${keyOf(name)}${isOptional ? '?' : ''}: ${toTypeScript(shape, indent)}\n`
}

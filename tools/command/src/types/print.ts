/** Writes rules as a file: code of a schema library, TypeScript types, or JSON Schema. */

import { comment, escapeUnits, keyOf } from './code.ts'
import { type AddFinding, findingsOf, type JsonSchema, type Rule, titleOf } from './rule.ts'
import { docOf, type Limits, readShape, type Shape } from './shape.ts'
import { toTypeScript, typescriptLimits } from './typescript.ts'
import { toValibot, valibotLimits } from './valibot.ts'
import { toZod, zodLimits } from './zod.ts'

export const FORMATS = ['zod', 'valibot', 'typescript', 'json-schema'] as const
export type Format = (typeof FORMATS)[number]

/** The first words of each generated file. A file without these words was not generated. */
export const MARK = 'Written by `hookline types`.'
const HEADER = `/** ${MARK} Run it again instead of editing this file. */\n`

interface Library {
  readonly limits: Limits
  readonly import: string
  readonly toCode: (shape: Shape, indent: string) => string
  /** The code that accepts any object. */
  readonly anything: string
}

const LIBRARIES: Readonly<Record<'zod' | 'valibot', Library>> = {
  zod: { limits: zodLimits, import: "import { z } from 'zod'", toCode: toZod, anything: 'z.looseObject({})' },
  valibot: {
    limits: valibotLimits,
    import: "import * as v from 'valibot'",
    toCode: toValibot,
    anything: 'v.looseObject({})',
  },
}

/** @param rules The rules, in the order in which they are written. */
export function printRules(rules: readonly Rule[], format: Format, addFinding: AddFinding): string {
  if (format === 'json-schema')
    return `${JSON.stringify(toJsonSchema(rules), undefined, 2).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, escapeUnits)}\n`
  const [events, traits] = [rules.filter(({ type }) => type === 'track'), rules.filter(({ type }) => type !== 'track')]
  if (format === 'typescript') {
    const memberOf = (rule: Rule): string => {
      const shape = readShape(rule.schema, typescriptLimits, findingsOf(titleOf(rule), addFinding))
      return `${comment(docOf(rule.schema), '  ')}  ${nameOf(rule)}: ${toTypeScript(shape, '  ')}\n`
    }
    return [
      HEADER,
      `/** The properties of track messages, by event. */\nexport interface Events {\n${events.map(memberOf).join('')}}\n`,
      `/** The traits of messages, by type. */\nexport interface Traits {\n${traits.map(memberOf).join('')}}\n`,
    ].join('\n')
  }
  const library = LIBRARIES[format]
  const memberOf = (rule: Rule): string => {
    const shape = readShape(rule.schema, library.limits, findingsOf(titleOf(rule), addFinding))
    const code = shape.kind === 'unknown' ? library.anything : library.toCode(shape, '  ')
    return `${comment(docOf(rule.schema), '  ')}  ${nameOf(rule)}: ${code},\n`
  }
  const objectOf = (members: readonly Rule[]): string => {
    return members.length === 0 ? '{}' : `{\n${members.map(memberOf).join('')}}`
  }
  return [
    HEADER,
    `${library.import}\n`,
    `/** The properties of track messages, by event. */\nexport const events = ${objectOf(events)}\n`,
    `/** The traits of messages, by type. */\nexport const traits = ${objectOf(traits)}\n`,
  ].join('\n')
}

function nameOf({ type, event }: Rule): string {
  return keyOf(event ?? type)
}

/** Returns one schema that describes whole messages. `hookline types` can read this schema again. */
function toJsonSchema(rules: readonly Rule[]): JsonSchema {
  const anyOf = rules.map(({ type, event, schema }) => {
    const [field, names] = type === 'track' ? ['properties', ['type', 'event']] : ['traits', ['type']]
    const properties = {
      type: { const: type },
      ...(event !== undefined && { event: { const: event } }),
      [field as string]: schema,
    }
    return { title: event ?? `${type} traits`, type: 'object', properties, required: names }
  })
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', $comment: MARK, anyOf }
}

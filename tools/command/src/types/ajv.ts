/**
 * Creates the JSON Schema validator: Ajv with other implementations of some keywords. Ajv's own implementations give wrong results, or call
 * properties of the data, such as `valueOf`.
 */

import { Ajv2020, type FuncKeywordDefinition } from 'ajv/dist/2020.js'
import { isObject } from '../../../json.ts'

/** Creates a validator for JSON Schema 2020-12. The validator collects all errors, and ignores formats. */
export function createAjv(): Ajv2020 {
  const ajv = new Ajv2020({
    ...{ strict: false, allErrors: true, validateFormats: false, logger: false, validateSchema: false },
    ownProperties: true, // Otherwise, the inherited `constructor` would count as a property.
  })
  for (const definition of KEYWORDS) ajv.removeKeyword(`${definition.keyword}`).addKeyword(definition)
  return ajv
}

const KEYWORDS: readonly FuncKeywordDefinition[] = [
  {
    keyword: 'multipleOf',
    type: 'number',
    compile: (factor: number) => (value: number) => isMultiple(value, factor),
    error: { message: ({ schema }) => `must be a multiple of ${schema}` },
  },
  // Where Ajv does not collect errors, such as in `not` and `anyOf`, it ignores a missing property whose name is empty.
  { keyword: 'required', type: 'object', compile: requireNames },
  {
    keyword: 'uniqueItems',
    type: 'array',
    compile: (isUnique: boolean) => (items: unknown[]) =>
      !isUnique || new Set(items.map(canonical)).size === items.length,
  },
  {
    keyword: 'enum',
    compile: (values: unknown[]) => {
      const accepted = new Set(values.map(canonical))
      return (value: unknown) => accepted.has(canonical(value))
    },
    error: { message: 'must be equal to one of the allowed values' },
  },
  {
    keyword: 'const',
    compile: (accepted: unknown) => (value: unknown) => canonical(value) === canonical(accepted),
    error: { message: 'must be equal to the constant' },
  },
]

function requireNames(names: readonly string[]): ReturnType<NonNullable<FuncKeywordDefinition['compile']>> {
  const validate: ReturnType<typeof requireNames> = (value: object) => {
    const missing = names.filter((name) => !Object.hasOwn(value, name))
    validate.errors = missing.map((missingProperty) => ({ keyword: 'required', params: { missingProperty } }))
    return missing.length === 0
  }
  return validate
}

/** Returns whether a number is an exact decimal multiple of another, as 19.99 is of 0.01. Infinity is no multiple. */
function isMultiple(value: number, factor: number): boolean {
  if (!Number.isFinite(value)) return false
  const [one, other] = [decimalOf(value), decimalOf(factor)]
  const places = Math.max(one.places, other.places)
  const [whole, part] = [one, other].map((each) => each.digits * 10n ** BigInt(places - each.places)) as [
    bigint,
    bigint,
  ]
  return whole % part === 0n
}

/** Splits a number into its digits and its decimal places: 1.25 is 125 with two decimal places. */
function decimalOf(value: number): { digits: bigint; places: number } {
  const [mantissa = '', exponent = '0'] = String(value).split('e')
  const [whole, fraction = ''] = mantissa.split('.')
  return { digits: BigInt(`${whole}${fraction}`), places: fraction.length - Number(exponent) }
}

/** Returns the same text for equal values, whatever the order of their keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, each: unknown) => {
    if (!isObject(each)) return each
    const names = Object.keys(each).sort()
    return Object.fromEntries(names.map((name) => [name, each[name]]))
  })
}

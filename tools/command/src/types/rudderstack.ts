/** Reads the tracking plans of RudderStack's command-line tool: YAML files that refer to each other's events, properties and types. */

import { isObject } from '../../../json.ts'
import { type AddFinding, findingsOf, type JsonSchema, type Rule } from './rule.ts'
import { normalise, text } from './schema.ts'

/** Returns whether a document is a file of RudderStack's command-line tool, in `rudder/v1` or an older version. */
export function isRudderStack(value: unknown): value is JsonSchema {
  return isObject(value) && /^rudder\/v?[01]/.test(String(value.version)) && text(value.kind) !== undefined
}

/** Reads the tracking plans in these files. */
export function readRudderStack(files: readonly JsonSchema[], addFinding: AddFinding): Rule[] {
  const specs = files.map(({ kind, spec }) => ({ kind, spec: isObject(spec) ? spec : {} }))
  const catalog = { event: indexOf('events'), property: indexOf('properties'), type: indexOf('types') }
  const plans = specs.filter(({ kind }) => kind === 'tracking-plan' || kind === 'tp')
  return plans.flatMap(({ spec }) => listOf(spec.rules).flatMap(readRule))

  function indexOf(list: string): ReadonlyMap<string, JsonSchema> {
    return new Map(specs.flatMap(({ spec }) => listOf(spec[list])).map((each) => [String(each.id), each]))
  }

  function find(kind: keyof typeof catalog, reference: unknown): JsonSchema | undefined {
    const [, id = ''] = REFERENCES[kind].exec(String(reference)) ?? []
    return catalog[kind].get(id)
  }

  function readRule(rule: JsonSchema): Rule[] {
    const old = isObject(rule.event) ? rule.event : {}
    const reference = old.$ref ?? rule.event
    const place = text(reference) ?? `rule ${String(rule.id)}`
    const give = (fault: string): Rule[] => {
      addFinding({ place, text: fault })
      return []
    }
    if (rule.event === undefined && rule.includes !== undefined)
      return give('includes other rules: the rule is left out')
    const event = find('event', reference)
    if (event === undefined) return give('is not in these files: its rule is left out')
    const type = event.event_type
    if (type !== 'track' && type !== 'identify' && type !== 'group') {
      return give(`is a ${type} event: only track, identify and group messages have schemas`)
    }
    const section = rule.identity_section ?? old.identity_section
    if (section === 'context.traits') return give('describes `context.traits`: only `traits` have schemas')
    const name = type === 'track' ? String(event.name) : undefined
    const title = name ?? `${type} traits`
    const addTo = findingsOf(title, addFinding)
    const isOpen = rule.additional_properties ?? old.allow_unplanned ?? false
    const written = { ...objectOf(rule, isOpen === true, addTo, []), ...describe(event) }
    return [{ type, event: name, schema: normalise(written, addTo), version: undefined }]
  }

  /** @param types The custom types that contain this object. */
  function objectOf(
    { properties, variants }: JsonSchema,
    isOpen: boolean,
    addFinding: (path: string, fault: string) => void,
    types: readonly string[],
  ): JsonSchema {
    const own = listOf(properties)
    const ofVariants = listOf(variants).flatMap((variant) => {
      const rest = Array.isArray(variant.default) ? { properties: variant.default } : variant.default
      return [...listOf(variant.cases), rest].flatMap((each) => listOf(isObject(each) ? each.properties : []))
    })
    if (ofVariants.length > 0) addFinding('', '`variants` are not supported: their properties are optional')
    const optional: JsonSchema[] = ofVariants.map((each) => ({ ...each, required: false }))
    const members = [...optional, ...own].flatMap((use) => {
      const reference = use.$ref ?? use.property
      const property = find('property', reference)
      if (property === undefined) addFinding(String(reference), 'is not in these files: the property is left out')
      return property === undefined ? [] : [{ name: String(property.name), use, property }]
    })
    const entries = members.map(
      ({ name, use, property }) => [name, schemaOf(property, use, addFinding, types)] as const,
    )
    return {
      type: 'object',
      properties: Object.fromEntries(entries),
      required: members.filter(({ use }) => use.required === true).map(({ name }) => name),
      ...(!isOpen && { additionalProperties: false }),
    }
  }

  function schemaOf(
    property: JsonSchema,
    use: JsonSchema,
    addFinding: (path: string, fault: string) => void,
    within: readonly string[],
  ): JsonSchema {
    const { itemTypes, ...config } = camelCase(property.config ?? property.propConfig)
    const items = typesOf(property.item_types ?? property.item_type ?? itemTypes)
    const declared = typesOf(property.types ?? property.type)
    const hasNested = listOf(use.properties).length > 0
    const types = declared.length === 0 && items.length === 0 && hasNested ? ['object'] : declared
    const objectIn = (all: readonly string[]): JsonSchema => {
      if (!hasNested || !all.includes('object')) return {}
      const isOpen = use.additional_properties !== false && use.additionalProperties !== false
      const { type: _, ...schema } = objectOf(use, isOpen, addFinding, within)
      return schema
    }
    const anyOf = (all: readonly string[], keywords: JsonSchema): JsonSchema => {
      const plain = all.filter((type) => !type.startsWith('#'))
      const custom = all.filter((type) => type.startsWith('#')).map((type) => customType(type, addFinding, within))
      const own = { ...(plain.length > 0 && { type: plain }), ...keywords, ...objectIn(plain) }
      const schemas = plain.length > 0 || custom.length === 0 ? [...custom, own] : custom
      return schemas.length === 1 ? (schemas[0] as JsonSchema) : { anyOf: schemas }
    }
    const list = items.length > 0 ? { items: anyOf(items, {}) } : {}
    return { ...anyOf(types, { ...config, ...list }), ...describe(property) }
  }

  function customType(
    reference: string,
    addFinding: (path: string, fault: string) => void,
    within: readonly string[],
  ): JsonSchema {
    const found = find('type', reference)
    if (found === undefined || within.includes(reference)) {
      addFinding(
        reference,
        found ? 'refers to itself: any value is accepted' : 'is not in these files: any value is accepted',
      )
      return {}
    }
    const inside = [...within, reference]
    const { properties: _, ...plain } = found
    const ofObject = listOf(found.properties).length > 0 ? objectOf(found, true, addFinding, inside) : {}
    return { ...schemaOf(plain, {}, addFinding, inside), ...ofObject, ...describe(found) }
  }
}

/** The patterns of references, such as `#event:order_paid`, or `#/events/shop/order_paid` in older files. */
const REFERENCES = {
  event: /^#(?:\/events\/[^/]+\/|event:)(.+)$/,
  property: /^#(?:\/properties\/[^/]+\/|property:)(.+)$/,
  type: /^#(?:\/custom-types\/[^/]+\/|custom-type:)(.+)$/,
} as const

function describe({ description }: JsonSchema): JsonSchema {
  return text(description) === undefined ? {} : { description }
}

/** Reads the types in a text, such as `string` or `string, null`, or in a list. */
function typesOf(types: unknown): string[] {
  const list = Array.isArray(types) ? types.map(String) : typeof types === 'string' ? types.split(',') : []
  return list.map((type) => type.trim()).filter(Boolean)
}

/** Renames keys such as `min_length` to `minLength`, the form in older files and in JSON Schema. */
function camelCase(config: unknown): JsonSchema {
  const entries = isObject(config) ? Object.entries(config) : []
  return Object.fromEntries(
    entries.map(([key, value]) => [key.replace(/_(\w)/g, (_, char) => char.toUpperCase()), value]),
  )
}

function listOf(value: unknown): readonly JsonSchema[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

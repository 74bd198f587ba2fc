/** Reads tracking plans: recognises their format, and finds the schema of each event. */

import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { isMessage, isObject } from '../../../json.ts'
import { UsageError } from '../terminal.ts'
import { isRudderStack, readRudderStack } from './rudderstack.ts'
import { type AddFinding, type AddPathFinding, findingsOf, type JsonSchema, type Rule, titleOf } from './rule.ts'
import { normalise, text } from './schema.ts'
import { isTerraform, readTerraform } from './terraform.ts'

/** A file that may contain a plan, or part of one. */
export interface PlanFile {
  readonly name: string
  readonly text: string
  /** Whether the file was found in a folder. A folder may also contain files without a plan. */
  readonly isFound: boolean
}

const MAX_DEPTH = 10

/**
 * Reads the rules in these files. All files of RudderStack are read together, because a plan consists of several of them.
 *
 * @throws UsageError for a file without a plan.
 */
export function readPlans(files: readonly PlanFile[], addFinding: AddFinding): Rule[] {
  const documents = files.flatMap((file) => parse(file).map((value) => ({ file, value })))
  const ofRudderStack = documents.filter(({ value }) => isRudderStack(value))
  const others = documents.filter(({ value }) => !isRudderStack(value))
  const rules = others.flatMap(({ file, value }) => readPlan(value, file, addFinding))
  return [
    ...rules,
    ...readRudderStack(
      ofRudderStack.map(({ value }) => value as JsonSchema),
      addFinding,
    ),
  ]
}

function parse({ name, text: given, isFound }: PlanFile): unknown[] {
  const text = given.replace(/^\ufeff/, '')
  try {
    if (isTerraform(text)) return readTerraform(text, name)
    if (/^\s*[[{]/.test(text)) return [JSON.parse(text)]
    const documents = parseAllDocuments(text, { merge: true, logLevel: 'error' })
    const [fault] = 'empty' in documents ? [] : documents.flatMap(({ errors }) => errors)
    if (fault !== undefined) throw fault
    return 'empty' in documents ? [] : documents.map((document) => document.toJS({ maxAliasCount: 100 }))
  } catch (error) {
    if (isFound) return []
    if (error instanceof UsageError) throw error
    const [fault] = (error as Error).message.split('\n')
    throw new UsageError(
      `${name} could not be read as JSON, YAML or HCL: ${fault?.replace(/[.:]$/, '')}. Correct the file, or pass another one.`,
    )
  }
}

function readPlan(value: unknown, file: PlanFile, addFinding: AddFinding): Rule[] {
  const parts = [...findParts(value, 0)]
  if (parts.length > 0) return parts.flatMap((part) => readPart(part, addFinding))
  if (!isSchema(value)) {
    if (file.isFound) return []
    const known = 'a tracking plan of Segment or RudderStack, a JSON Schema, or messages'
    throw new UsageError(`${file.name} must contain ${known}. Pass another file.`)
  }
  return readSchemas(value, file.name, addFinding)
}

/** A rule of a plan from Segment's Public API or Config API. */
interface PlanPart {
  readonly type: string
  readonly key: unknown
  readonly version: unknown
  readonly schema: unknown
}

/** Finds the rules at any depth in the answer of an API or in a Terraform state. Each list of rules is one plan. */
function* findParts(value: unknown, depth: number): Generator<PlanPart[]> {
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return
  if (Array.isArray(value) && value.some(isPublicRule)) return yield value.filter(isObject).map(toPart)
  if (isObject(value) && Array.isArray(value.events) && value.events.some(isConfigEvent))
    return yield partsOfConfig(value)
  for (const each of Object.values(value)) yield* findParts(each, depth + 1)
}

function isPublicRule(value: unknown): value is JsonSchema {
  return isObject(value) && text(value.type) !== undefined && ('jsonSchema' in value || 'json_schema' in value)
}

function toPart({ type, key, version, jsonSchema, json_schema, deprecatedAt }: JsonSchema): PlanPart {
  const schema = fromText(jsonSchema ?? json_schema)
  const isDeprecated = isObject(schema) && Date.parse(String(deprecatedAt)) > 0 // A date in the year 1 means that the rule is not deprecated.
  return {
    ...{ type: String(type).toUpperCase(), key, version },
    schema: isDeprecated ? { ...schema, deprecated: true } : schema,
  }
}

/** Parses a schema that Terraform keeps as text. */
function fromText(schema: unknown): unknown {
  if (typeof schema !== 'string') return schema
  try {
    return JSON.parse(schema)
  } catch {
    return undefined
  }
}

function isConfigEvent(value: unknown): value is JsonSchema {
  return isObject(value) && text(value.name) !== undefined && isObject(value.rules)
}

/** Reads an answer from Segment's Config API. The answer has all schemas in one object. */
function partsOfConfig({ events, global, identify, group, identify_traits, group_traits }: JsonSchema): PlanPart[] {
  const ofEvents = (events as unknown[])
    .filter(isConfigEvent)
    .map(({ name, description, version, rules, eventType }) => {
      const schema = { ...(text(description) !== undefined && { description }), ...(rules as JsonSchema) }
      return { type: String(eventType ?? 'track').toUpperCase(), key: name, version, schema }
    })
  const of = (type: string, schema: unknown): PlanPart[] => {
    return isObject(schema) && Object.keys(schema).length > 0
      ? [{ type, key: undefined, version: undefined, schema }]
      : []
  }
  const traitsOf = (type: string, traits: unknown): PlanPart[] => {
    const listed = Array.isArray(traits) ? traits.filter(isConfigEvent) : []
    return of(
      type,
      listed.length === 0 ? traits : { properties: Object.fromEntries(listed.map(({ name, rules }) => [name, rules])) },
    )
  }
  return [
    ...ofEvents,
    ...of('COMMON', global),
    ...of('IDENTIFY', identify),
    ...of('GROUP', group),
    ...traitsOf('IDENTIFY', identify_traits),
    ...traitsOf('GROUP', group_traits),
  ]
}

const TYPES: Readonly<Record<string, Rule['type']>> = { TRACK: 'track', IDENTIFY: 'identify', GROUP: 'group' }

/** Returns the rules of one Segment plan. Each rule includes the schema that the plan has for all messages. */
function readPart(parts: readonly PlanPart[], addFinding: AddFinding): Rule[] {
  const common = parts.filter(({ type }) => type === 'COMMON').map(({ schema }) => schema)
  const left = Map.groupBy(
    parts.filter(({ type }) => !Object.hasOwn(TYPES, type) && type !== 'COMMON'),
    ({ type }) => type,
  )
  for (const [type, found] of left) {
    addFinding({
      place: `${type} rules`,
      text: `${found.length} left out: only track, identify and group messages have schemas`,
    })
  }
  const schemas = parts.map(({ schema }) => schema)
  const areWhole = schemas.some((schema) => isWhole(normalise(schema, () => {})))
  return parts.flatMap(({ type: name, key, version, schema }): Rule[] => {
    const type = TYPES[name]
    if (type === undefined) return []
    const event = type === 'track' ? text(key) : undefined
    if (type === 'track' && event === undefined) {
      addFinding({ place: 'TRACK rules', text: 'a rule without an event name (`key`) is left out' })
      return []
    }
    const title = titleOf({ type, event })
    const addTo = findingsOf(title, addFinding)
    const sections = [schema, ...common].map((each) => sectionOf(normalise(each, addTo), type, addTo, areWhole))
    const number = Number(version)
    return [{ type, event, schema: sections.reduce(combine), version: Number.isFinite(number) ? number : undefined }]
  })
}

const SECTIONS = ['context', 'properties', 'traits']
/** The fields that a message may have. */
const FIELDS = [
  ...SECTIONS,
  ...['type', 'event', 'userId', 'anonymousId', 'groupId', 'previousId', 'messageId', 'integrations', 'channel'],
  ...['version', 'timestamp', 'originalTimestamp', 'sentAt', 'receivedAt', 'writeKey', 'projectId', '_metadata'],
]

/** Returns whether a schema describes a whole message: it has several sections, or one section and otherwise only fields of messages. */
function isWhole(schema: unknown): boolean {
  if (!isObject(schema)) return false
  const { properties = {}, allOf, anyOf, oneOf } = schema
  const fields = properties as JsonSchema
  const found = SECTIONS.filter((name) => Object.hasOwn(fields, name))
  const areObjects = found.every((name) => mayBeObject(fields[name]))
  if (found.length > 0 && areObjects && (found.length > 1 || hasOnlyFields(schema))) return true
  return [allOf, anyOf, oneOf].flatMap(listOf).some(isWhole)
}

function mayBeObject(schema: unknown): boolean {
  return !isObject(schema) || [schema.type ?? 'object'].flat().includes('object')
}

function hasOnlyFields({ properties = {} }: JsonSchema): boolean {
  return Object.keys(properties as object).every((name) => FIELDS.includes(name))
}

/**
 * Returns the part of a schema for `properties` or `traits`. A Segment schema describes either the whole message or only this part.
 *
 * @param areWhole Whether other schemas of the plan describe whole messages.
 */
function sectionOf(schema: JsonSchema, type: Rule['type'], addFinding: AddPathFinding, areWhole = false): JsonSchema {
  return isWhole(schema) || (areWhole && hasOnlyFields(schema)) ? sectionOfWhole(schema, type, addFinding) : schema
}

function sectionOfWhole(schema: JsonSchema, type: Rule['type'], addFinding: AddPathFinding): JsonSchema {
  const name = type === 'track' ? 'properties' : 'traits'
  const fields = (schema.properties ?? {}) as JsonSchema
  const sections = SECTIONS.filter((each) => Object.hasOwn(fields, each))
  if (sections.length > 0 && !sections.includes(name)) {
    addFinding('', `describes ${sections.join(' and ')} of messages, but no \`${name}\``)
  }
  noteOthers(schema, name, addFinding)
  const section = Object.hasOwn(fields, name) ? fields[name] : {}
  const { description, deprecated } = schema
  return {
    ...(isObject(section) ? section : { allOf: [section] }),
    ...(text(description) && { description }),
    ...(deprecated === true && { deprecated }),
  }
}

/** Reports what a schema requires of a message outside this section, because only the section is checked. */
function noteOthers(
  { properties = {}, required, ...keywords }: JsonSchema,
  section: string,
  addFinding: AddPathFinding,
): void {
  const fields = properties as JsonSchema
  const described = Object.keys(fields).filter((name) => !SECTIONS.includes(name) || saysSomething(fields[name]))
  const missing = listOf(required).filter((name) => !SECTIONS.includes(String(name)))
  for (const name of new Set([...described, ...missing])) {
    if (name !== section) addFinding('', `describes \`${name}\`, which is not checked`)
  }
  const beside = Object.keys(keywords).filter((keyword) => !OF_WHOLE.has(keyword))
  if (beside.length > 0) addFinding('', `has ${beside.join(', ')} beside \`${section}\`: this is not checked`)
}

function saysSomething(schema: unknown): boolean {
  if (!isObject(schema)) return schema === false
  const { properties = {}, required = [], ...keywords } = schema
  const isLong = Object.keys(properties as object).length + listOf(required).length > 0
  return isLong || Object.keys(keywords).some((keyword) => !OF_WHOLE.has(keyword))
}

/** Keywords that do not restrict a message. */
const OF_WHOLE = new Set(['type', 'title', 'description', '$comment', 'deprecated'])

/** Combines two schemas into a schema that has the properties of both. */
function combine(own: JsonSchema, common: JsonSchema): JsonSchema {
  if (!Object.keys(common).every((keyword) => ADDABLE.has(keyword)))
    return { ...own, allOf: [...listOf(own.allOf), common] }
  const rest = own.additionalProperties ?? true
  const [mine, theirs] = [own.properties ?? {}, common.properties ?? {}] as [JsonSchema, JsonSchema]
  const added = Object.entries(theirs).map(([name, schema]) => {
    const before = Object.hasOwn(mine, name) ? mine[name] : rest
    return [name, before === true || isDeepStrictEqual(before, schema) ? schema : { allOf: [before, schema] }] as const
  })
  const kept = rest === false ? added.filter(([name]) => Object.hasOwn(mine, name)) : added
  const required = [...listOf(own.required), ...listOf(common.required)]
  return { ...own, properties: { ...mine, ...Object.fromEntries(kept) }, required: [...new Set(required)] }
}

const ADDABLE = new Set(['type', 'title', 'description', 'properties', 'required', '$comment'])

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

function isSchema(value: unknown): value is JsonSchema {
  if (!isObject(value)) return false
  const { $schema } = value
  if (isMessage(value)) return false
  if ($schema !== undefined) return /json-?schema/.test(String($schema))
  return [value.properties, value.anyOf, value.oneOf, value.allOf].some((each) => typeof each === 'object')
}

/** Reads a plain JSON Schema. The schema describes one or several whole messages, or the properties of the event whose name it has. */
function readSchemas(schema: JsonSchema, path: string, addFinding: AddFinding): Rule[] {
  const found: [path: string, text: string][] = []
  const whole = normalise(schema, (path, fault) => found.push([path, fault]))
  const parts = [whole.anyOf ?? whole.oneOf ?? whole].flat() as JsonSchema[]
  const messages = parts.map((part) => readMessage(part, addFinding))
  const ofMessages = messages.filter((rule) => rule !== undefined)
  const { name, version } = identify(schema, path)
  const addTo = findingsOf(name, addFinding)
  for (const [path, fault] of found) addTo(path, fault)
  if (ofMessages.length === 0) {
    return [{ type: 'track', event: name, schema: sectionOf(whole, 'track', addTo), version }]
  }
  const left = parts.length - ofMessages.length
  if (left > 0) addTo('', `${left} left out: only track, identify and group messages have schemas`)
  const beside = parts.length > 1 ? Object.keys(whole).filter((keyword) => !BESIDE_MESSAGES.has(keyword)) : []
  if (beside.length > 0) addTo('', `has ${beside.join(', ')} beside its messages: this is not checked`)
  return ofMessages.map((rule) => ({ ...rule, version }))
}

/** Returns the name and the version of a schema, from its title, Snowplow's `self` or a path such as `order_completed/jsonschema/1-0-0`. */
function identify({ title, self }: JsonSchema, path: string): { name: string; version: number | undefined } {
  const own = isObject(self) ? self : {}
  const parts = resolve(path.replace(/(\.schema)?\.[a-z]\w*$/i, '')).split(/[\\/]/)
  const fileName = parts.at(-1) ?? ''
  const named = parts.findLast((part) => !VERSION.test(part) && part !== 'jsonschema')
  const version = [text(own.version) ?? '', fileName].find((each) => VERSION.test(each))
  const [major, minor = 0, patch = 0] = version?.match(/\d+/g)?.map(Number) ?? []
  return {
    name: text(title) ?? text(own.name) ?? named ?? fileName,
    version: major === undefined ? undefined : major + minor / 1e3 + patch / 1e6,
  }
}

const VERSION = /^v?\d+([._-]\d+)*$/i

const BESIDE_MESSAGES = new Set(['anyOf', 'oneOf', 'type', 'title', 'description', '$comment'])

/** Reads the schema of a message whose `type` or `event` is fixed. Returns undefined for any other schema. */
function readMessage(schema: JsonSchema, addFinding: AddFinding): Rule | undefined {
  const { type, event, ...properties } = (schema.properties ?? {}) as JsonSchema
  const [name = 'track', key] = [constantOf(type), constantOf(event)]
  if (name !== 'identify' && name !== 'group' && (name !== 'track' || key === undefined)) return undefined
  const rule = { type: name, event: name === 'track' ? key : undefined } as const
  const required = listOf(schema.required).filter((field) => field !== 'type' && field !== 'event')
  const section = sectionOfWhole({ ...schema, properties, required }, name, findingsOf(titleOf(rule), addFinding))
  return { ...rule, schema: section, version: undefined }
}

function constantOf(schema: unknown): string | undefined {
  if (!isObject(schema)) return undefined
  const { const: value, enum: values } = schema
  return text(value ?? (Array.isArray(values) && values.length === 1 ? values[0] : undefined))
}

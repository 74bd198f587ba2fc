/** Compares messages with a plan. Finds messages that break it, events that are not in it, and events that never arrived. */

import type { ErrorObject, ValidateFunction } from 'ajv'
import { isObject } from '../../../json.ts'
import { openJunit, printResult, type Result } from '../report.ts'
import { counted, escaped, note, printJson } from '../terminal.ts'
import { createAjv } from './ajv.ts'
import { type AddFinding, type JsonSchema, type Rule, titleOf } from './rule.ts'
import { join } from './schema.ts'
import { isDataEvent } from './texts.ts'
import type { Seen } from './traffic.ts'

interface Fault {
  /** The path of the field, such as `items[].sku`. */
  readonly path: string
  readonly text: string
  count: number
  /** The id of the first message with this fault; undefined when the message has no id. */
  readonly messageId: string | undefined
}

/** The result for the messages of one event, or for identify or group messages. */
export interface Checked {
  readonly title: string
  readonly verdict: 'pass' | 'breaks' | 'unplanned' | 'unseen'
  readonly messages: number
  /** The number of messages that break the plan. */
  readonly broken: number
  readonly faults: readonly Fault[]
  /** The id of the first message of an unplanned event. */
  readonly messageId: string | undefined
}

/** The maximum number of different faults to list for each event. */
const MAX_FAULTS = 100
/** The maximum number of unplanned events to list separately. */
const MAX_UNPLANNED = 10_000
const MAX_ID_LENGTH = 100

interface Entry {
  readonly title: string
  readonly schema: JsonSchema | undefined
  validate: ValidateFunction | undefined
  readonly faults: Map<string, Fault>
  messages: number
  broken: number
  messageId: string | undefined
}

export interface Check {
  add(seen: Seen): void
  /** Lists the results, starting with those that break the plan. */
  results(): readonly Checked[]
}

export function createCheck(rules: readonly Rule[], addFinding: AddFinding): Check {
  const planned = new Map(rules.map((rule) => [keyOf(rule.type, rule.event), createEntry(titleOf(rule), rule.schema)]))
  const unplanned = new Map<string, Entry>()
  const others = createEntry('Other events, whose names contain data or are beyond the first 10 000')

  function createEntry(title: string, schema?: JsonSchema): Entry {
    return { title, schema, validate: undefined, faults: new Map(), messages: 0, broken: 0, messageId: undefined }
  }

  /** Compiles the schema when the first message arrives, because many events of a plan may never arrive. */
  function validatorOf(entry: Entry, schema: JsonSchema): ValidateFunction {
    try {
      entry.validate ??= createAjv().compile({ type: 'object', allOf: [schema] })
    } catch (error) {
      addFinding({ place: entry.title, text: `cannot be checked: ${(error as Error).message}` })
      entry.validate = createAjv().compile(true)
    }
    return entry.validate
  }

  function entryOf(event: string): Entry {
    const known = planned.get(keyOf('track', event)) ?? unplanned.get(event)
    if (known !== undefined) return known
    if (unplanned.size === MAX_UNPLANNED || isDataEvent(event)) return others
    const created = createEntry(event)
    unplanned.set(event, created)
    return created
  }

  return {
    add({ message }) {
      const { type } = message
      const messageId = message.messageId?.slice(0, MAX_ID_LENGTH)
      const entry = type === 'track' ? entryOf(message.event) : planned.get(keyOf(type, undefined))
      if (entry === undefined) return
      entry.messages += 1
      entry.messageId ??= messageId
      const { schema, faults } = entry
      if (schema === undefined) return
      const validate = validatorOf(entry, schema)
      const value = (type === 'track' ? message.properties : (message as { traits?: unknown }).traits) ?? {}
      if (accepts(validate, value)) return
      entry.broken += 1
      // Leaves out the errors of the parts of `anyOf` and `oneOf`, because Ajv also reports an error for the whole.
      const errors = (validate.errors ?? []).filter(({ schemaPath }) => !PART.test(schemaPath))
      const wrongType = new Set(
        errors.filter(({ keyword }) => keyword === 'type').map(({ instancePath }) => instancePath),
      )
      const telling = errors.filter(({ keyword, instancePath }) => keyword === 'type' || !wrongType.has(instancePath))
      const found = new Map(telling.flatMap((error) => describe(error, schema)))
      if (found.size === 0) found.set(...faultOf('the object', 'does not match'))
      for (const [key, { path, text }] of found) {
        const known = faults.get(key)
        if (known !== undefined) known.count += 1
        else if (faults.size < MAX_FAULTS) faults.set(key, { path, text, count: 1, messageId })
      }
    },
    results() {
      const all = [...planned.values(), ...unplanned.values(), ...(others.messages > 0 ? [others] : [])]
      const results = all.map(({ title, schema, messages, broken, faults, messageId }): Checked => {
        const isUnplanned = schema === undefined
        const verdict = isUnplanned ? 'unplanned' : messages === 0 ? 'unseen' : broken > 0 ? 'breaks' : 'pass'
        const sorted = [...faults.values()].sort((one, other) => other.count - one.count)
        return { title, verdict, messages, broken, faults: sorted, messageId: isUnplanned ? messageId : undefined }
      })
      return results.sort((one, other) => ORDER.indexOf(one.verdict) - ORDER.indexOf(other.verdict))
    },
  }
}

/** Validates a value. Rejects a value that is nested too deeply for the stack, without listing errors. */
function accepts(validate: ValidateFunction, value: unknown): boolean {
  try {
    return validate(value)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    validate.errors = null
    return false
  }
}

const ORDER = ['breaks', 'unplanned', 'unseen', 'pass']

function keyOf(type: string, event: string | undefined): string {
  return `${type} ${event ?? ''}`
}

/** Matches the path of a part of `anyOf` or `oneOf`, but not of a property that is named `anyOf` or `oneOf`. */
const PART = /(?<!\/properties)\/(anyOf|oneOf)\/\d+\//

/** Describes an error from Ajv. Names only keys that are in the plan, because other keys of a message may be personal data. */
function describe(error: ErrorObject, schema: JsonSchema): [key: string, fault: Pick<Fault, 'path' | 'text'>][] {
  const { keyword, instancePath, params, message = '' } = error
  if (keyword === 'if' || keyword === 'allOf') return []
  const keys = instancePath.split('/').slice(1)
  const path = keys.reduce((path, key, at) => nameOf(path, key, schema, keys.slice(0, at)), '')
  const missing: unknown = params.missingProperty
  if (typeof missing === 'string') return [faultOf(join(path, missing), 'is missing')]
  return [faultOf(path || 'the object', WORDS[keyword] ?? message)]
}

/** Replacements for error texts of Ajv that contain a position or say too little. */
const WORDS: Readonly<Record<string, string>> = {
  additionalProperties: 'has properties that are not in the plan',
  unevaluatedProperties: 'has properties that are not in the plan',
  uniqueItems: 'has duplicate elements',
}

function faultOf(path: string, text: string): [key: string, fault: Pick<Fault, 'path' | 'text'>] {
  return [`${path}: ${text}`, { path, text }]
}

function nameOf(path: string, key: string, schema: JsonSchema, before: readonly string[]): string {
  if (/^\d+$/.test(key) && path !== '') return `${path.replace(/\[\]$/, '')}[]`
  const name = key.replaceAll('~1', '/').replaceAll('~0', '~')
  return join(path, declares(schema, [...before, name]) ? name : '*')
}

/** Returns whether a schema declares the property at this path. */
function declares(schema: unknown, [key, ...rest]: readonly string[]): boolean {
  if (!isObject(schema) || key === undefined) return false
  const { properties, items, additionalProperties, allOf, anyOf, oneOf, then } = schema
  const own = isObject(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined
  if (own !== undefined && (rest.length === 0 || declares(own, rest))) return true
  const inside = [/^\d+$/.test(key) ? items : undefined, own === undefined ? additionalProperties : undefined]
  if (rest.length > 0 && inside.some((each) => declares(each, rest))) return true
  const parts = [allOf, anyOf, oneOf, then].flat()
  return parts.some((part) => declares(part, [key, ...rest]))
}

export interface PrintOptions {
  readonly json?: boolean
  readonly junit?: string
}

/** Prints the results and writes the JUnit file. Sets exit code 1 if messages break the plan or belong to unplanned events. */
export function printCheck(results: readonly Checked[], { json = false, junit }: PrintOptions): void {
  const file = junit === undefined ? undefined : openJunit(junit, 'hookline types')
  const width = Math.min(40, Math.max(...results.map(({ title }) => escaped(title).length)))
  const shown: Result[] = []
  for (const checked of results) {
    const [sentence, faults] = [escaped(sentenceOf(checked)), checked.faults.map((fault) => escaped(lineOf(fault)))]
    const result = { id: escaped(checked.title), result: VERDICTS[checked.verdict] }
    shown.push({ ...result, sentence: [sentence, ...faults].join('; ') })
    if (json) printJson(checked)
    else printResult({ ...result, id: result.id.padEnd(width), sentence: [sentence, ...faults].join('\n        ') })
  }
  const count = (verdict: Checked['verdict']): number => results.filter((each) => each.verdict === verdict).length
  const [broken, unplanned] = [count('breaks'), count('unplanned')]
  note(
    `${counted(count('pass'), 'event')} as planned, ${broken} broken, ${unplanned} not in the plan, ${count('unseen')} never arrived.`,
  )
  file?.write(shown, false)
  process.exitCode = broken + unplanned > 0 ? 1 : 0
}

const VERDICTS = { pass: 'pass', breaks: 'fail', unplanned: 'fail', unseen: 'skip' } as const

function sentenceOf({ verdict, messages, broken, messageId }: Checked): string {
  if (verdict === 'pass') return counted(messages, 'message')
  if (verdict === 'unseen') return 'never arrived'
  if (verdict === 'breaks') return `${broken} of ${counted(messages, 'message')} broke the plan`
  return `${counted(messages, 'message')} of an event that is not in the plan${exampleOf(messageId)}`
}

function lineOf({ path, text, count, messageId }: Fault): string {
  return `${path} ${text}: ${counted(count, 'message')}${exampleOf(messageId)}`
}

function exampleOf(messageId: string | undefined): string {
  return messageId === undefined ? '' : `, for example ${messageId}`
}

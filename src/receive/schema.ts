/** Validates messages with the schemas of the application: those of track properties, of traits, and of custom messages. */

import { isThenable } from '../kit/callbacks.ts'
import { invalidOption, kindOf, refuseUnknown } from '../kit/checks.ts'
import { HooklineError, type SchemaIssue } from '../protocol/error.ts'
import type { CustomMessage, Fields, ReceivedMessage } from '../protocol/message.ts'
import { isObject } from '../protocol/parse.ts'
import { countIssues } from './schema-issues.ts'

/** The part of Standard Schema (standardschema.dev) that Hookline uses. zod, valibot, arktype and other libraries implement it. */
export interface Schema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

/** The result of validating a value: the output of the schema, or the issues. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** The schemas of track properties, by event name. The output of each schema is an object. */
export type EventSchemas = Readonly<Record<string, Schema<object>>>

/**
 * The schemas of traits, by the message type that carries the traits. An audience sync sends messages with a single trait, which must also
 * match the schema, so make a trait optional if only some messages carry it.
 */
export interface TraitSchemas {
  /** The schema of the traits of a user. */
  readonly identify?: Schema<object>
  /** The schema of the traits of a group. */
  readonly group?: Schema<object>
}

/**
 * The type of the option `custom`: `true` accepts any JSON whose `type` is not one of the seven message types; a schema
 * accepts such JSON only if it matches the schema.
 */
export type CustomOption = boolean | Schema | undefined

declare const closed: unique symbol

/** The event schemas of a receiver. With `strictEvents`, the receiver accepts handlers only for these events. */
export type EventsOf<Events, Strict> = [Strict] extends [true] ? Events & { readonly [closed]?: true } : Events

/** The names of events for which a receiver accepts handlers. Editors suggest the events that have a schema. */
export type EventName<Events> = typeof closed extends keyof Events
  ? keyof Events & string
  : (keyof Events & string) | (string & {})

/** The type of the properties or traits that handlers get: the output of the schema or, without a schema, the fields as they were sent. */
export type SchemaOutput<S> = 0 extends 1 & S ? Fields | undefined : S extends Schema ? OutputOf<S> : Fields | undefined

/** The type of the custom messages of a receiver, by its option `custom`; `never` for a receiver without that option. */
export type CustomOf<Custom> = 0 extends 1 & Custom
  ? CustomMessage
  : Custom extends Schema
    ? CustomMessage<OutputOf<Custom>>
    : Custom extends true
      ? CustomMessage
      : never

/** The type of the output of a schema. */
export type OutputOf<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O }
    ? O
    : unknown
  : never

/** Validates a message. Returns the message with the output of its schema, or the same message when it has no schema. */
export type Validate = (message: ReceivedMessage) => ReceivedMessage | PromiseLike<ReceivedMessage>

export function createValidate(events: EventSchemas = {}, traits: TraitSchemas = {}, custom?: CustomOption): Validate {
  const byEvent = readSchemas('events', events)
  const byType = readSchemas('traits', traits as EventSchemas, ['identify', 'group'])
  const customSchema = typeof custom === 'boolean' ? undefined : custom
  if (customSchema !== undefined) requireSchema('custom', customSchema)

  return (message) => {
    if (message.type === 'custom') return validateField(message, 'body', customSchema)
    if (message.type === 'track') return validateField(message, 'properties', byEvent.get(message.event))
    if (message.type === 'identify' || message.type === 'group') {
      return validateField(message, 'traits', byType.get(message.type))
    }
    return message
  }
}

function readSchemas(
  option: string,
  schemas: Readonly<Record<string, Schema>>,
  known?: readonly string[],
): Map<string, Schema> {
  const isOneSchema = isSchema(schemas)
  if (isOneSchema || !isPlainObject(schemas)) {
    const found = isOneSchema ? 'a schema' : kindOf(schemas)
    throw invalidOption(option, 'must be a plain object of schemas', found, 'Pass { name: schema }.')
  }
  if (known !== undefined) refuseUnknown(schemas, known, `${option}.`)
  const entries = Object.entries(schemas)
  for (const [name, schema] of entries) requireSchema(`${option}['${name}']`, schema)
  return new Map(entries)
}

function requireSchema(option: string, schema: unknown): void {
  if (isSchema(schema)) return
  const advice = 'Pass a schema of zod, valibot, arktype or another library that implements it.'
  throw invalidOption(option, 'must implement Standard Schema', kindOf(schema), advice)
}

function isSchema(value: unknown): boolean {
  return typeof (value as Partial<Schema> | null | undefined)?.['~standard']?.validate === 'function'
}

function isPlainObject(value: unknown): boolean {
  return isObject(value) && !(Symbol.iterator in value)
}

function validateField(
  message: ReceivedMessage,
  field: 'properties' | 'traits' | 'body',
  schema: Schema | undefined,
): ReceivedMessage | PromiseLike<ReceivedMessage> {
  if (schema === undefined) return message
  const given: unknown = Reflect.get(message, field)
  const fields = field === 'body' ? given : (given ?? {})
  const result = schema['~standard'].validate(fields)
  const finish = (result: SchemaResult<unknown>): ReceivedMessage => {
    if (result.issues !== undefined) throw mismatch(field, [...result.issues])
    if ('value' in result) return { ...message, [field]: result.value }
    throw new TypeError('A schema returned neither { value } nor { issues }. Check its `validate` function.')
  }
  return isThenable(result) ? result.then(finish) : finish(result)
}

function mismatch(field: string, issues: readonly SchemaIssue[]): HooklineError {
  const text = `\`${field}\` does not match its schema. Found ${countIssues(issues)}. See \`issues\` of this error in \`onError\`.`
  return new HooklineError('schema_mismatch', text, { path: field, issues })
}

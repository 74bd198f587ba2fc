/** Your schemas: any that speak Standard Schema, for the properties of an event or the traits of a user or group. */

import { HooklineError } from '../protocol/error.ts'
import type { Fields, Message } from '../protocol/message.ts'
import { isThenable } from '../protocol/thenable.ts'

/** The part of the Standard Schema interface (standardschema.dev) used here: zod, valibot, arktype and others have it. */
export interface Schema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined
  }
}

/** One thing that is wrong with a value, and where. */
export interface SchemaIssue {
  readonly message: string
  readonly path?: ReadonlyArray<PropertyKey | { readonly key: PropertyKey }> | undefined
}

/** What a schema makes of a value: its output, or what is wrong with it. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] }

/** Schemas of track properties, by event name; each puts out an object. */
export type EventSchemas = Readonly<Record<string, Schema<object>>>

/**
 * Schemas of traits, by the message type that carries them. A message with one trait, as an audience sync sends, has to
 * fit too: make fields optional that only some messages carry.
 */
export interface TraitSchemas {
  /** Of the traits of a user. */
  readonly identify?: Schema<object>
  /** Of the traits of a group. */
  readonly group?: Schema<object>
}

/** What a schema makes of its input: handlers see this. */
export type SchemaOutput<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer O }
    ? O
    : unknown
  : Fields | undefined

/** Puts a message into the shape of its schema; the message itself where it has none. */
export type Shape = (message: Message) => Message | PromiseLike<Message>

/**
 * Prepares the schemas.
 *
 * @throws TypeError for something that is not a Standard Schema.
 */
export function createShape(events: EventSchemas = {}, traits: TraitSchemas = {}): Shape {
  const byEvent = readSchemas('events', events)
  const byType = readSchemas('traits', traits as EventSchemas)
  for (const type of byType.keys()) {
    if (type !== 'identify' && type !== 'group') {
      throw new TypeError(`traits.${type}: only identify and group messages carry traits.`)
    }
  }

  return (message) => {
    if (message.type === 'track') return shaped(message, 'properties', byEvent.get(message.event))
    if (message.type === 'identify' || message.type === 'group') {
      return shaped(message, 'traits', byType.get(message.type))
    }
    return message
  }
}

function readSchemas(option: string, schemas: Readonly<Record<string, Schema>>): Map<string, Schema> {
  if (!isPlainObject(schemas)) throw new TypeError(`${option}: must be an object of schemas.`)
  const entries = Object.entries(schemas)
  for (const [name, schema] of entries) {
    if (typeof schema?.['~standard']?.validate !== 'function') {
      throw new TypeError(
        `${option}: the schema of '${name}' does not implement Standard Schema (zod, valibot, arktype …).`,
      )
    }
  }
  return new Map(entries)
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(Symbol.iterator in value)
}

function shaped(
  message: Message,
  field: 'properties' | 'traits',
  schema: Schema | undefined,
): Message | PromiseLike<Message> {
  if (schema === undefined) return message
  const fields = (message as unknown as Record<string, unknown>)[field] ?? {}
  const result = schema['~standard'].validate(fields)
  return isThenable(result)
    ? result.then((settled) => withOutput(message, field, settled))
    : withOutput(message, field, result)
}

function withOutput(message: Message, field: string, result: SchemaResult<unknown>): Message {
  if (result.issues === undefined) {
    if ('value' in result) return { ...message, [field]: result.value }
    throw new TypeError('The schema gave neither a value nor issues.')
  }
  const path = [field, ...keysOf(result.issues[0])].join('.')
  // What a schema says may quote the value, so only the path goes on the error.
  throw new HooklineError('schema_mismatch', `${path} does not fit the schema of this message.`, { path })
}

function keysOf(issue: SchemaIssue | undefined): string[] {
  return (issue?.path ?? []).map((part) => keyOf(typeof part === 'object' ? part.key : part))
}

/** A key as it may be printed: where the keys are data too, as in a record, they may be anything. */
function keyOf(key: PropertyKey): string {
  return /^[\w$ -]{1,64}$/.test(String(key)) ? String(key) : '…'
}

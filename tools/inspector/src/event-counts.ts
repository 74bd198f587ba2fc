/** Counts the events of one receiver for the view "Events": how often each event arrived, and which fields did not match its schema. */

import type { Clock, HooklineError, SchemaIssue } from 'hookline'
import { readIssue, type schemasOf } from '../../../src/internals.ts'
import { cut, SHORT } from './redact.ts'
import type { EventLine, FieldLine, PartEvents } from './wire.ts'

/** The kind of a message: its type, and the event of a track message. */
export interface Kind {
  readonly type: string
  readonly event?: string | undefined
}

/** The maximum number of events to list in addition to those that have a schema. */
const MAX_EVENTS = 500
const MAX_FIELDS = 20
/** The maximum number of issues to examine in a message. */
const MAX_ISSUES = 100
/** The maximum number of keys to include in the path of a field. */
const MAX_KEYS = 10
const MINUTES = 15
const MINUTE_MS = 60_000

interface Count extends Kind {
  readonly hasSchema: boolean | undefined
  count: number
  /** The number of messages in each minute, keyed by minutes since the epoch. */
  readonly minutes: Map<number, number>
  firstAt?: number
  lastAt?: number
  failed: number
  readonly fields: Map<string, FieldLine>
  otherFields: number
}

type Schemas = ReturnType<typeof schemasOf>

export type EventCounts = ReturnType<typeof createEventCounts>

/** @param schemas The schemas of the receiver; undefined if they are unknown. In that case, no event is reported as unplanned. */
export function createEventCounts(part: string, clock: Clock, schemas?: Schemas) {
  const counts = new Map<string, Count>()
  let others = 0
  let limit = Number.POSITIVE_INFINITY
  for (const event of schemas?.events ?? []) findOrCreate({ type: 'track', event })
  for (const type of schemas?.traits ?? []) findOrCreate({ type })
  limit = counts.size + MAX_EVENTS

  /** Finds or creates the count of a kind of message. Returns undefined when there are too many kinds. */
  function findOrCreate({ type, event }: Kind): Count | undefined {
    const name = cut(event, SHORT)
    const key = name === undefined ? type : `${type} ${name}`
    const known = counts.get(key)
    if (known !== undefined || counts.size >= limit) return known
    const hasSchema = schemas && isPlanned(schemas, { type, event })
    const created = { count: 0, minutes: new Map(), failed: 0, fields: new Map(), otherFields: 0 }
    counts.set(key, { type, event: name, hasSchema, ...created })
    return counts.get(key)
  }

  return {
    /** Counts a message that arrived. */
    arrived(kind: Kind): void {
      const count = findOrCreate(kind)
      if (count === undefined) {
        others += 1
        return
      }
      const now = clock.now()
      count.count += 1
      count.firstAt ??= now
      count.lastAt = now
      const minute = Math.floor(now / MINUTE_MS)
      count.minutes.set(minute, (count.minutes.get(minute) ?? 0) + 1)
      const [oldest] = count.minutes.keys()
      if (count.minutes.size > MINUTES) count.minutes.delete(oldest as number)
    },
    /** Counts a message that does not match its schema, and its faulty fields. Faults of one field with the same code are counted once. */
    mismatched(kind: Kind, { path = '', issues = [] }: HooklineError): void {
      const count = findOrCreate(kind)
      if (count === undefined) return
      const { fields } = count
      count.failed += 1
      const found = issues.slice(0, MAX_ISSUES).map((issue) => fieldOf(path, issue))
      for (const [key, field] of new Map(found.map((field) => [`${field.path} ${field.code}`, field]))) {
        const known = fields.get(key)
        if (known === undefined && fields.size === MAX_FIELDS) count.otherFields += 1
        else fields.set(key, { ...field, count: (known?.count ?? 0) + 1 })
      }
    },
    /** Deletes the counts of fields, because the paths of fields may contain data from messages, such as the keys of a record. */
    forget(): void {
      for (const count of counts.values()) {
        count.fields.clear()
        count.otherFields = 0
      }
    },
    snapshot(): PartEvents {
      const last = Math.floor(clock.now() / MINUTE_MS)
      const events = [...counts.values()].map((count) => lineOf(count, last))
      return {
        part,
        events: events.sort((one, other) => rankOf(one) - rankOf(other) || other.count - one.count),
        others,
      }
    },
  }
}

/** Returns whether the receiver has a schema for the event; undefined when it has no schemas for this type of message. */
function isPlanned({ events, traits, custom }: Schemas, { type, event }: Kind): boolean | undefined {
  if (type === 'track') return events?.includes(event as string)
  if (type === 'identify' || type === 'group') return traits?.includes(type)
  return (type === 'custom' && custom) || undefined
}

/** Returns the path of an issue, such as `properties.items[].sku`, and its code. */
function fieldOf(path: string, issue: SchemaIssue): Omit<FieldLine, 'count'> {
  const { keys, code = '' } = readIssue(issue)
  const names = keys.slice(0, MAX_KEYS).map((key) => (typeof key === 'number' ? '[]' : `.${key}`))
  return { path: cut(path + names.join(''), SHORT) ?? '', code }
}

function lineOf({ minutes, fields, ...count }: Count, last: number): EventLine {
  // The cast allows undefined fields, because JSON omits them.
  return {
    ...count,
    minutes: Array.from({ length: MINUTES }, (_, index) => minutes.get(last - MINUTES + 1 + index) ?? 0),
    fields: [...fields.values()].sort((one, other) => other.count - one.count),
  } as EventLine
}

/** Returns the sort rank of an event: events without a schema come first, then events that did not match their schema. */
function rankOf({ hasSchema, failed }: EventLine): number {
  return hasSchema === false ? 0 : failed > 0 ? 1 : 2
}

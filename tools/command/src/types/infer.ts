/** Infers schemas from messages: a schema for the properties of each event, and a schema for the traits of identify and group messages. */

import type { Fields, Message } from 'hookline'
import { createObservations, MAX_DEPTH, MAX_KEYS, MAX_OBSERVED, type Observed, VALUE_TYPES } from './observed.ts'
import { type Finding, type JsonSchema, type Rule, titleOf } from './rule.ts'
import { join } from './schema.ts'
import { isData, isDataEvent, nameFormat } from './texts.ts'
import type { Seen } from './traffic.ts'

export interface Inference {
  add(seen: Seen): void
  /** Returns the rules of track messages, sorted by event, and then the rules of identify and group messages. */
  rules(): Rule[]
  findings(): Finding[]
}

/** The observed properties of an event, or the observed traits of identify or group messages. */
interface Subject extends Pick<Rule, 'type' | 'event'> {
  count: number
  firstAt: number
  lastAt: number
  readonly properties: Map<string, Observed>
  /** The number of messages with keys that are data rather than names. */
  withData: number
  /** The number of messages that have so many keys that some are not examined. */
  withMore: number
}

const MAX_EVENTS = 10_000
/** The maximum number of keys of a subject. The limit leaves room for the observations of other subjects. */
const MAX_SUBJECT_KEYS = 10_000
/** A subject with more than `MAX_KEYS` keys keeps only the keys that occur in at least this share of its messages. */
const MIN_SHARE = 0.01
/** The minimum number of texts for an enum. An enum has at most ten values, so each value occurred at least twice on average. */
const MIN_ENUM_COUNT = 20
/** The minimum number of messages for a required field. With fewer, the field may well be missing from the next message. */
const MIN_REQUIRED_COUNT = 20
const DAY_MS = 86_400_000

/**
 * Creates an object that infers schemas. The rules do not depend on the order of the messages, unless the maximum number of events or
 * fields is reached. Keys that are data rather than names are never written.
 *
 * @param options.enums Whether repeated texts become an enum. If false, no values are kept or written.
 */
export function createInference(options: { readonly enums: boolean }): Inference {
  const observations = createObservations(options)
  const events = new Map<string, Subject>()
  const traits = { identify: createSubject('identify'), group: createSubject('group') }
  const others = new Map<string, number>()
  let [dataEvents, moreEvents] = [0, 0]

  function subjectOf(message: Message): Subject | undefined {
    if (message.type === 'identify' || message.type === 'group') return traits[message.type]
    if (message.type === 'track') return eventOf(message.event)
    others.set(message.type, (others.get(message.type) ?? 0) + 1)
    return undefined
  }

  function eventOf(name: string): Subject | undefined {
    const known = events.get(name)
    if (known !== undefined) return known
    if (isDataEvent(name)) dataEvents += 1
    else if (events.size === MAX_EVENTS) moreEvents += 1
    else {
      const created = createSubject('track', name)
      events.set(name, created)
      return created
    }
    return undefined
  }

  function addFields(subject: Subject, fields: Fields): void {
    const { properties } = subject
    let [hasData, hasMore] = [false, false]
    for (const key of Object.keys(fields)) {
      let observed = properties.get(key)
      if (observed === undefined) {
        if (isData(key)) hasData = true
        else if (properties.size === MAX_SUBJECT_KEYS) hasMore = true
        else observed = observations.create()
        if (observed === undefined) continue
        properties.set(key, observed)
      }
      observations.add(observed, fields[key], 1)
    }
    if (hasData) subject.withData += 1
    if (hasMore) subject.withMore += 1
  }

  function subjects(): readonly Subject[] {
    const sorted = [...events].sort(byName).map(([, subject]) => subject)
    return [...sorted, traits.identify, traits.group].filter(({ count }) => count > 0)
  }

  return {
    add({ message, at }) {
      const subject = subjectOf(message)
      if (subject === undefined) return
      subject.count += 1
      if (at !== undefined) {
        subject.firstAt = Math.min(subject.firstAt, at)
        subject.lastAt = Math.max(subject.lastAt, at)
      }
      const fields = message.type === 'track' ? message.properties : (message as { traits?: Fields }).traits
      if (fields !== undefined) addFields(subject, fields)
    },
    rules: () =>
      subjects().map((subject) => {
        const { type, event, count } = subject
        const keywords = keywordsOfProperties(keptProperties(subject), count, count)
        const schema = { $comment: describeOrigin(subject), type: 'object', ...keywords }
        return { type, event, schema, version: undefined }
      }),
    findings: () => [
      ...subjects().flatMap(findingsOf),
      ...noteTimes('track', dataEvents, 'with data in the event name: such events have no schema'),
      ...noteTimes(
        'track',
        moreEvents,
        `with event names beyond the first ${grouped(MAX_EVENTS)}: such events have no schema`,
      ),
      ...[...others].sort(byName).flatMap(([type, count]) => noteTimes(type, count, 'and gets no schema')),
      ...(observations.isFull ? [{ place: 'all messages', text: TOO_MANY_PLACES }] : []),
    ],
  }
}

const TOO_MANY_PLACES = `had more than ${grouped(MAX_OBSERVED)} different fields in total: later fields have no schema`

function createSubject(type: Rule['type'], event?: string): Subject {
  const times = { firstAt: Number.POSITIVE_INFINITY, lastAt: Number.NEGATIVE_INFINITY }
  return { type, event, count: 0, ...times, properties: new Map(), withData: 0, withMore: 0 }
}

/** Compares names by code units, which gives the same order on every machine. */
function byName([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  return one < other ? -1 : 1
}

/** Returns the properties, sorted by name. If there are more than `MAX_KEYS`, leaves out rare properties. */
function keptProperties({ properties, count }: Subject): readonly Named[] {
  const sorted = [...properties].sort(byName)
  if (sorted.length <= MAX_KEYS) return sorted
  return sorted.filter(([, { counts }]) => sum(counts) >= MIN_SHARE * count)
}

/** Describes where a schema comes from: `1 204 messages, 3 days`. */
function describeOrigin({ count, firstAt, lastAt }: Subject): string {
  const days = Math.max(1, Math.ceil((lastAt - firstAt) / DAY_MS))
  return `${counted(count, 'message')}${lastAt < firstAt ? '' : `, ${counted(days, 'day')}`}`
}

/** @param most An upper bound on the number of messages with such a value. One message may contain many of them, in a list or a map. */
function schemaOf(observed: Observed, most: number, comment?: string): JsonSchema {
  const { counts, isTooDeep, items } = observed
  const seen = Math.min(most, sum(counts))
  const note = comment === undefined ? {} : { $comment: comment }
  if (isTooDeep) return note
  const types = VALUE_TYPES.filter((type) => counts[type] > 0)
  return {
    ...note,
    type: types.length === 1 ? types[0] : types,
    ...keywordsOfTexts(observed),
    ...(counts.object > 0 && keywordsOfObjects(observed, seen)),
    ...(items && { items: schemaOf(items, seen) }),
  }
}

function keywordsOfTexts({ counts, formats, texts }: Observed): JsonSchema {
  const format = counts.string > 0 ? nameFormat(formats) : undefined
  const hasOthers = counts.string + counts.null < sum(counts)
  const isEnum = texts !== undefined && counts.string >= MIN_ENUM_COUNT && !hasOthers
  const values = isEnum && [...[...texts].sort(), ...(counts.null > 0 ? [null] : [])]
  return { ...(format && { format }), ...(values && { enum: values }) }
}

function keywordsOfObjects({ counts, properties, isMap, values }: Observed, most: number): JsonSchema {
  if (!isMap) return keywordsOfProperties([...(properties ?? [])].sort(byName), counts.object, most)
  return values === undefined ? {} : { additionalProperties: schemaOf(values, most) }
}

type Named = readonly [name: string, observed: Observed]

/**
 * Returns the schema keywords for the properties of the objects that were observed in one place.
 *
 * @param total The number of the objects.
 * @param most An upper bound on the number of messages that contained at least one of the objects.
 */
function keywordsOfProperties(sorted: readonly Named[], total: number, most: number): JsonSchema {
  const isRequired = ({ counts }: Observed): boolean => {
    return sum(counts) === total && Math.min(total, most) >= MIN_REQUIRED_COUNT
  }
  const required = sorted.filter(([, observed]) => isRequired(observed)).map(([name]) => name)
  const schemas = sorted.map(([name, observed]) => {
    const comment = `in ${grouped(sum(observed.counts))} of ${grouped(total)}`
    return [name, schemaOf(observed, most, isRequired(observed) ? undefined : comment)]
  })
  return { properties: Object.fromEntries(schemas), ...(required.length > 0 && { required }) }
}

function findingsOf(subject: Subject): Finding[] {
  const { properties, withData, withMore } = subject
  const place = titleOf(subject)
  const kept = keptProperties(subject)
  const rare = properties.size - kept.length
  const many = `had ${grouped(properties.size)} different keys: ${grouped(rare)} of them, each in less than 1 % of the messages, are left out`
  return [
    ...(properties.size > MAX_KEYS ? [{ place, text: many }] : []),
    ...noteTimes(place, withMore, `with keys beyond the first ${grouped(MAX_SUBJECT_KEYS)}: they are left out`),
    ...noteTimes(place, withData, 'with keys that are data: they are left out'),
    ...kept.flatMap(([name, observed]) => findingsAt(`${place}: ${join('', name)}`, observed)),
  ]
}

function findingsAt(place: string, observed: Observed): Finding[] {
  const { counts, properties, values, items, isTooDeep } = observed
  if (isTooDeep) return [{ place, text: `is nested more than ${MAX_DEPTH} levels deep: deeper fields have no schema` }]
  const found = VALUE_TYPES.filter((type) => type !== 'null' && counts[type] > 0)
  const mix = found
    .sort((one, other) => counts[other] - counts[one])
    .map((type) => `as ${WORDS[type]} (${grouped(counts[type])})`)
  return [
    ...(mix.length > 1 ? [{ place, text: `arrived ${LIST.format(mix)}` }] : []),
    ...[...(properties ?? [])].sort(byName).flatMap(([name, each]) => findingsAt(join(place, name), each)),
    ...(values ? findingsAt(`${place}.*`, values) : []),
    ...(items ? findingsAt(`${place}[]`, items) : []),
  ]
}

const WORDS = {
  array: 'array',
  boolean: 'boolean',
  null: 'null',
  number: 'number',
  object: 'object',
  string: 'text',
} as const
const LIST = new Intl.ListFormat('en-GB')

function noteTimes(place: string, count: number, what: string): Finding[] {
  return count === 0 ? [] : [{ place, text: `arrived ${count === 1 ? 'once' : `${grouped(count)} times`} ${what}` }]
}

function sum(counts: Observed['counts']): number {
  return VALUE_TYPES.reduce((total, type) => total + counts[type], 0)
}

/** Formats a number with spaces: `1 204`. */
function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ' ')
}

function counted(count: number, what: string): string {
  return `${grouped(count)} ${what}${count === 1 ? '' : 's'}`
}

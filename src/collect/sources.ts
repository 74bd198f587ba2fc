/** The sources of a collector: checks them, and finds them by write key and by name. */

import { hash, randomUUID } from 'node:crypto'
import {
  hasMethods,
  invalidOption,
  kindOf,
  nearest,
  refuseUnknown,
  requireOneOf,
  requireSecret,
  requireText,
  show,
} from '../kit/checks.ts'
import type { CollectorDestination, Source, SourceKind } from './collector-types.ts'

export interface ReadySource {
  readonly name: string
  readonly writeKey: string
  readonly kind: SourceKind | undefined
  readonly destinations: readonly CollectorDestination[]
}

export type Sources = ReturnType<typeof createSources>

export function createSources(given: unknown) {
  const sources = readSources(given)
  const byName = new Map(sources.map((source) => [source.name, source]))
  let find: FindSource | undefined

  return {
    /** Finds the source of a write key. The duration of the search reveals nothing about the keys. */
    withKey(writeKey: string): ReadySource | undefined {
      find ??= indexKeys(sources) // The index needs random values, which workerd provides only from the first request on.
      return find(writeKey)
    },
    /** Returns the sources with these names, or all sources by default. @throws TypeError for an unknown name. */
    named(names: readonly string[] = [...byName.keys()]): readonly ReadySource[] {
      if (!Array.isArray(names) || names.length === 0) {
        throw invalidOption('sources', 'must be a non-empty list', kindOf(names), 'Pass the names of sources.')
      }
      return [...new Set(names)].map((name) => {
        const source = byName.get(name)
        if (source === undefined) throw unknownSource(name, [...byName.keys()])
        return source
      })
    },
  }
}

type FindSource = (writeKey: string) => ReadySource | undefined

function indexKeys(sources: readonly ReadySource[]): FindSource {
  const salt = randomUUID()
  // Keys are found by their digest: comparing the keys themselves would take longer for a guess that begins correctly.
  const digest = (writeKey: string): string => hash('sha256', salt + writeKey)
  const byDigest = new Map(sources.map((source) => [digest(source.writeKey), source]))
  return (writeKey) => byDigest.get(digest(writeKey))
}

function unknownSource(name: unknown, names: readonly string[]): TypeError {
  const near = typeof name === 'string' ? nearest(name, names) : undefined
  const question = near === undefined ? '' : ` Did you mean ${show(near)}?`
  return new TypeError(`Unknown source. Got ${show(name)}.${question} Valid sources: ${names.map(show).join(', ')}.`)
}

function readSources(sources: unknown): readonly ReadySource[] {
  if (!Array.isArray(sources) || sources.length === 0) {
    const advice = 'Pass at least one { name, writeKey, destinations }.'
    throw invalidOption('sources', 'must be a non-empty list', kindOf(sources), advice)
  }
  const ready = sources.map((source, index) => readSource(source, `sources[${index}]`))
  for (const field of ['name', 'writeKey'] as const) {
    const values = ready.map((source) => source[field])
    requireUnique(values, (index) => `sources[${index}].${field}`)
  }
  return ready
}

const SOURCE = ['name', 'writeKey', 'kind', 'destinations'] as const satisfies (keyof Source)[]
const KINDS: readonly SourceKind[] = ['web', 'mobile', 'server']

function readSource(source: unknown, option: string): ReadySource {
  if (typeof source !== 'object' || source === null) {
    throw invalidOption(option, 'must be an object', kindOf(source), 'Pass { name, writeKey, destinations }.')
  }
  refuseUnknown(source, SOURCE, `${option}.`)
  const { name, writeKey, kind: givenKind, destinations }: Partial<Record<keyof Source, unknown>> = source
  requireText(`${option}.name`, name, 'shop')
  requireSecret(`${option}.writeKey`, writeKey, 'the write key of the source')
  if (writeKey.includes(':')) {
    const advice = 'Pass a write key without a colon: a colon ends the user name in Basic authentication.'
    throw invalidOption(`${option}.writeKey`, 'must not contain a colon', undefined, advice)
  }
  const kind = givenKind === undefined ? undefined : requireOneOf(`${option}.kind`, givenKind, KINDS)
  if (!Array.isArray(destinations)) {
    const advice = 'Pass a list, which may be empty.'
    throw invalidOption(`${option}.destinations`, 'must be a list', kindOf(destinations), advice)
  }
  const ready = destinations.map((each, index) => requireDestination(each, `${option}.destinations[${index}]`))
  requireUnique(ready, (index) => `${option}.destinations[${index}]`)
  return { name, writeKey, kind, destinations: ready }
}

function requireDestination(given: unknown, option: string): CollectorDestination {
  if (isDestination(given)) return given
  throw invalidOption(option, 'must be a destination', kindOf(given), 'Pass the result of createDestination().')
}

function isDestination(given: unknown): given is CollectorDestination {
  return hasMethods(given, ['submit'])
}

function requireUnique(values: readonly unknown[], nameOf: (index: number) => string): void {
  const firstIndex = new Map<unknown, number>()
  for (const [index, value] of values.entries()) {
    const first = firstIndex.get(value)
    if (first !== undefined) {
      const rule = `must differ from \`${nameOf(first)}\``
      throw invalidOption(nameOf(index), rule, undefined, 'Change or remove one of the two.')
    }
    firstIndex.set(value, index)
  }
}

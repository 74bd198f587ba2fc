/** The rules from plans and messages. Each rule has the schema of an event's properties, or of traits. */

import { isDeepStrictEqual } from 'node:util'

/** A JSON Schema that is an object, not a boolean. */
export type JsonSchema = { readonly [keyword: string]: unknown }

export interface Rule {
  readonly type: 'track' | 'identify' | 'group'
  /** The name of the event; undefined for traits. */
  readonly event: string | undefined
  /** The schema of `properties` or `traits`: JSON Schema 2020-12 without references. */
  readonly schema: JsonSchema
  /** The version in the plan; undefined for a rule without a version. */
  readonly version: number | undefined
}

/** A note about one place in a schema. Its texts are untrusted: escape them. */
export interface Finding {
  /** The place, such as `Order Completed: items[].sku` or `identify traits: plan`. `.*` stands for the values of a map. */
  readonly place: string
  readonly text: string
}

export type AddFinding = (finding: Finding) => void

/** Adds a finding about the schema at a path: `items[].sku`, or an empty path for the whole schema. */
export type AddPathFinding = (path: string, text: string) => void

/** Returns a function that adds findings about the schema with this title. */
export function findingsOf(title: string, addFinding: AddFinding): AddPathFinding {
  return (path, text) => addFinding({ place: path === '' ? title : `${title}: ${path}`, text })
}

export function titleOf({ type, event }: Pick<Rule, 'type' | 'event'>): string {
  return event ?? `${type} traits`
}

/** Merges and sorts the rules of all sources. Keeps only the newest version of each rule, and prefers rules from plans. */
export function mergeRules(ofPlans: readonly Rule[], ofTraffic: readonly Rule[], addFinding: AddFinding): Rule[] {
  const found = new Map<string, Rule>()
  for (const rule of ofPlans) {
    const title = titleOf(rule)
    const key = `${rule.type} ${title}`
    const other = found.get(key)
    const [version, before] = [rule.version ?? 0, other?.version ?? 0]
    if (other === undefined || version > before) found.set(key, rule)
    else if (version === before && !isDeepStrictEqual(rule.schema, other.schema)) {
      addFinding({ place: title, text: 'has several schemas of the same version: the first one is used' })
    }
  }
  for (const rule of ofTraffic) {
    const key = `${rule.type} ${titleOf(rule)}`
    if (!found.has(key)) found.set(key, rule)
  }
  const [events, traits] = [false, true].map((isOfTraits) => {
    const rules = [...found].filter(([, { event }]) => (event === undefined) === isOfTraits)
    return rules.sort(([one], [other]) => (one < other ? -1 : 1)).map(([, rule]) => rule)
  })
  return [...(events ?? []), ...(traits ?? [])]
}

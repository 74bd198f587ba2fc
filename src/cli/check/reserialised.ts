/** Finds what changes bodies before an endpoint verifies them, from the bodies that it takes and refuses. */

import { listRewrites } from '../../message/explain/json-rewrites.ts'
import { readJsonText } from '../../message/explain/json-text.ts'
import { WRITERS } from '../../message/explain/json-writers.ts'

/** A body that was signed over its bytes, and whether it was refused. */
export interface Sample {
  readonly text: string
  readonly isRefused: boolean
}

/** What else than a serialiser changes a body. */
const CHANGES: readonly (readonly [sentence: string, change: (text: string) => string])[] = [
  ['It trims the body before it verifies it.', (text) => text.trim()],
  ['It trims the end of the body before it verifies it.', (text) => text.trimEnd()],
  ['It decodes the body as Latin-1 before it verifies it.', (text) => Buffer.from(text).toString('latin1')],
  ['It normalises Unicode before it verifies the body.', (text) => text.normalize()],
  ['It changes line breaks before it verifies the body.', (text) => text.replaceAll('\r\n', '\n')],
  ['It removes what is not ASCII before it verifies the body.', (text) => text.replace(/[^\0-\x7f]/g, '')],
]

/** Says what changes bodies: what changes all that are refused, and none that are taken. Undefined when nothing known does. */
export function findCulprit(samples: readonly Sample[]): string | undefined {
  const change = CHANGES.find(([, apply]) =>
    samples.every(({ text, isRefused }) => (apply(text) !== text) === isRefused),
  )
  if (change !== undefined) return change[0]

  const names = new Set(WRITERS.map(({ name }) => name))
  for (const { text, isRefused } of samples) {
    const same = unchangedBy(text)
    for (const name of names) if (same.has(name) === isRefused) names.delete(name)
  }
  return names.size === 0 ? undefined : reserialises([...names])
}

/** Says that an endpoint verifies what one of these serialisers writes: those with few settings are before the others. */
export function reserialises(names: readonly string[]): string {
  const firstOfEach = new Map(names.toReversed().map((name) => [name.replace(/ with .*/, ''), name]))
  const shown = [...firstOfEach.values()].reverse().slice(0, 3)
  return `It re-serialises the body before it verifies it, as ${shown.join(', or ')} does.`
}

/** The serialisers that write a text again as it is. */
function unchangedBy(text: string): ReadonlySet<string> {
  const json = readJsonText(text)
  const rewrites = json === undefined ? [] : listRewrites(json)
  return new Set(rewrites.filter(({ write }) => write(text.length + 1) === text).flatMap(({ names }) => names))
}

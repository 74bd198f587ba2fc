/**
 * Random inputs of a test. A set-up of every run: the seed is fixed, so that a commit fails always or never, and inputs are as long as
 * their `maxLength`, where fast-check stops 10 elements above `minLength` by default. `PROPERTIES=20` draws twenty times as many from a
 * random seed.
 */

import fc from 'fast-check'

const factor = Number(process.env.PROPERTIES ?? 1)

fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true, numRuns: runs(100), ...(factor === 1 && { seed: 1 }) })

/** Returns how often a property runs. */
export function runs(count: number): number {
  return count * factor
}

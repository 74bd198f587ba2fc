/** Pseudo-random numbers from a seed, so that a run can be repeated. */

/** Numbers from 0 to below 1, the same ones for the same seed (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** No number is an error: no round would run, and all would look green. */
export function readNumber(name: string, otherwise: number): number {
  const text = process.env[name] ?? `${otherwise}`
  if (!/^\d+$/.test(text)) throw new TypeError(`${name} must be a whole number. Got '${text}'.`)
  return Number(text)
}

/** Finds the latest numbers of a ring by their keys, without an object for each. */

/** An index of numbers that grow by one. It keeps those that a ring of so many places holds: older ones need no removal. */
export class KeyIndex {
  readonly #mask: number
  /** The latest number of each remainder of a hash, and for each place the one before it. */
  readonly #latest: Float64Array
  readonly #before: Float64Array
  readonly #hashes: Int32Array

  /** @param places A power of two. */
  constructor(places: number) {
    this.#mask = places - 1
    this.#latest = new Float64Array(places).fill(-1)
    this.#before = new Float64Array(places)
    this.#hashes = new Int32Array(places)
  }

  /** Adds the next number. */
  add(number: number, key: string): void {
    const hash = hashOf(key)
    const place = number & this.#mask
    this.#hashes[place] = hash
    this.#before[place] = this.#latest[hash & this.#mask] as number
    this.#latest[hash & this.#mask] = number
  }

  /** Finds the latest number, from `first` on, whose key is like this one, and for which `isIt` returns true; else undefined. */
  find(key: string, first: number, isIt: (number: number) => boolean): number | undefined {
    const hash = hashOf(key)
    let number = this.#latest[hash & this.#mask] as number
    while (number >= first) {
      if (this.#hashes[number & this.#mask] === hash && isIt(number)) return number
      number = this.#before[number & this.#mask] as number
    }
    return undefined
  }
}

/** Of texts that mostly differ in their first characters. */
function hashOf(key: string): number {
  let hash = 0
  for (let index = 0; index < 8; index += 1) hash = Math.imul(hash ^ key.charCodeAt(index), 0x0100_0193)
  return hash ^ (hash >>> 15)
}

/** Messages within bounds, the oldest first: entries, and those that were done at once, which become entries when they are needed. */

import { KeyIndex } from '../collections/key-index.ts'
import { type Slab, Slabs } from '../collections/slabs.ts'
import type { AnsweredEvent, ObservedHandled } from '../handling/observer.ts'
import { Entry, type Home } from './entry.ts'
import { keyOf, readExchange, roomOf, writeExchange } from './exchange.ts'
import type { Row } from './wire-message.ts'

/** The estimate, in bytes, of what a message takes here beside its bytes. */
const PLACE = 100

/**
 * A ring of places, twice as many as messages: those of messages that were forgotten stay empty until the ring comes to them. Versions
 * are those of the latest changes; 0 is an empty place.
 */
export class Pool {
  readonly slabs: Slabs = new Slabs()
  readonly #most: number
  readonly #mostBytes: number
  readonly #onDrop: (entry: Entry) => void
  /** Messages are numbered. These are the numbers of the first that is kept, and of the next; its last bits are a message's place. */
  #first = 0
  #next = 0
  #size = 0
  #bytes = 0
  readonly #mask: number
  readonly #ids: Float64Array
  readonly #versions: Float64Array
  readonly #sizes: Float64Array
  /** An entry, or the slab of a message that was done at once, with where it starts, and its part. */
  readonly #entries: (Entry | undefined)[]
  readonly #slabs: (Slab | undefined)[]
  readonly #starts: Uint32Array
  readonly #homes: (Home | undefined)[]
  /** Finds those that were done at once. */
  readonly #index: KeyIndex

  /** @param onDrop Receives each entry that has no room any more. */
  constructor(most: number, mostBytes: number, onDrop: (entry: Entry) => void) {
    const places = 2 ** Math.ceil(Math.log2(2 * most))
    this.#most = most
    this.#mostBytes = mostBytes
    this.#onDrop = onDrop
    this.#mask = places - 1
    this.#ids = new Float64Array(places)
    this.#versions = new Float64Array(places)
    this.#sizes = new Float64Array(places)
    this.#entries = new Array(places)
    this.#slabs = new Array(places)
    this.#starts = new Uint32Array(places)
    this.#homes = new Array(places)
    this.#index = new KeyIndex(places)
  }

  /** Adds an entry. It has no version before {@link note}. */
  add(entry: Entry): void {
    entry.place = this.#open(entry.id)
    this.#entries[entry.place] = entry
  }

  /** Notes that an entry has changed. */
  note(entry: Entry, version: number): void {
    this.#settle(entry.place, version, entry.size)
  }

  /** Adds a message that was done at once. Returns false when it is here, or cannot be kept so. Hot path. */
  addExchange(
    id: number,
    version: number,
    home: Home,
    key: string,
    handled: ObservedHandled,
    answered: AnsweredEvent,
    endedAt: number,
  ): boolean {
    const room = roomOf(handled.delivery.bytes.length)
    if (room === undefined || this.#placeOf(home, key) !== undefined) return false
    const slab = this.slabs.open(room)
    const start = slab.used
    const end = writeExchange(slab, key, handled, answered, endedAt)
    if (end === undefined) return false
    this.slabs.take(slab, end)
    const place = this.#open(id)
    this.#slabs[place] = slab
    this.#starts[place] = start
    this.#homes[place] = home
    this.#index.add(this.#next - 1, key)
    this.#settle(place, version, PLACE + end - start)
    return true
  }

  /** The entry of a message that was done at once, when that is the latest known of it. */
  findExchange(home: Home, key: string): Entry | undefined {
    const place = this.#placeOf(home, key)
    return place === undefined ? undefined : this.#unfold(place)
  }

  /** A message by its id. */
  find(id: number): Entry | undefined {
    const place = id === 0 ? -1 : this.#ids.indexOf(id) // Empty places have 0.
    return place === -1 ? undefined : (this.#entries[place] ?? this.#unfold(place))
  }

  /** The version of the latest change of an entry. */
  versionOf({ place }: Entry): number {
    return this.#versions[place] as number
  }

  /** The lines of those that changed since a version, 0 for all. */
  rowsSince(version: number): Row[] {
    const rows: Row[] = []
    for (let place = 0; place <= this.#mask; place += 1) {
      if ((this.#versions[place] as number) > version) rows.push((this.#entries[place] ?? this.#read(place)).row())
    }
    return rows
  }

  /** Drops the entries for which it returns true, and clears their bytes. Returns how many. */
  dropWhere(goes: (entry: Entry) => boolean): number {
    let count = 0
    for (let place = 0; place <= this.#mask; place += 1) {
      const entry = this.#ids[place] === 0 ? undefined : (this.#entries[place] ?? this.#read(place))
      if (entry === undefined || !goes(entry)) continue
      entry.clear()
      this.#drop(place)
      count += 1
    }
    return count
  }

  /** Opens the next place. Drops the oldest message when there are too many. */
  #open(id: number): number {
    while (this.#size === this.#most || this.#next - this.#first > this.#mask) this.#dropFirst()
    const place = this.#next & this.#mask
    this.#next += 1
    this.#size += 1
    this.#ids[place] = id
    return place
  }

  /** Drops the oldest messages for which there is no room. One stays, however large it is. */
  #settle(place: number, version: number, size: number): void {
    this.#versions[place] = version
    this.#bytes += size - (this.#sizes[place] as number)
    this.#sizes[place] = size
    while (this.#bytes > this.#mostBytes && this.#size > 1) this.#dropFirst()
  }

  #dropFirst(): void {
    const place = this.#first & this.#mask
    this.#first += 1
    if (this.#ids[place] !== 0) this.#drop(place)
  }

  #drop(place: number): void {
    const [entry, slab] = [this.#entries[place], this.#slabs[place]]
    if (slab !== undefined) this.slabs.release(slab)
    this.#entries[place] = this.#slabs[place] = this.#homes[place] = undefined
    this.#size -= 1
    this.#bytes -= this.#sizes[place] as number
    this.#ids[place] = this.#versions[place] = this.#sizes[place] = 0
    if (entry !== undefined) this.#onDrop(entry)
  }

  /** The place of a message that was done at once. */
  #placeOf(home: Home, key: string): number | undefined {
    const number = this.#index.find(key, this.#first, (number) => {
      const place = number & this.#mask
      const slab = this.#slabs[place]
      return slab !== undefined && this.#homes[place] === home && keyOf(slab, this.#starts[place] as number) === key
    })
    return number === undefined ? undefined : number & this.#mask
  }

  /** A message that was done at once, as an entry: whole, or without headers and steps, which take the most time to read. */
  #read(place: number, isWhole = false): Entry {
    const [slab, start] = [this.#slabs[place] as Slab, this.#starts[place] as number]
    const exchange = readExchange(slab, start)
    const { at, key } = exchange
    const [id, home] = [this.#ids[place] as number, this.#homes[place] as Home]
    const entry = new Entry({ id, at, kind: 'received', home, key, isRefused: false }, this.slabs)
    entry.setExchange(exchange, slab, start)
    entry.place = place
    if (!isWhole) return entry
    const { headers, steps } = exchange.readRest()
    entry.setHeaders(headers)
    for (const step of steps) entry.add(step)
    return entry
  }

  /** Makes it an entry from now on. */
  #unfold(place: number): Entry {
    const entry = this.#read(place, true)
    this.#entries[place] = entry
    this.#slabs[place] = this.#homes[place] = undefined
    entry.home.byKey.set(entry.key as string, entry)
    return entry
  }
}

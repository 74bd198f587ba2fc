/** How a job lies in a row of pg-boss: its bytes as base64, and its place in the order. */

import type { Clock } from '../protocol/clock.ts'

/** The `data` of a row. */
export interface Data {
  /** When it came or comes due, in microseconds since the epoch: orders what is fetched together. */
  readonly at: number
  readonly body: string
  /** When it was handed out first, in milliseconds since the epoch. */
  readonly firstAt?: number
  readonly state?: string
  /** Why it is dead. */
  readonly reason?: string
  /**
   * How many fetches do not count: those before it was re-driven, and those that no handler saw. The number of the attempt
   * counts them all.
   */
  readonly before?: number
}

/** Bytes as text that JSON takes: U+0000 would fail an insert. */
export function encode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** The bytes again; undefined for what is no base64. */
export function decode(text: unknown): Uint8Array | undefined {
  if (typeof text !== 'string' || text.length % 4 !== 0 || !BASE64.test(text)) return undefined
  return Buffer.from(text, 'base64')
}

const BASE64 = /^[\w+/]*={0,2}$/

/** The data of a row; undefined when somebody else wrote something else. */
export function readData(value: unknown): Data | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { at, body, firstAt, state, reason, before } = value as Readonly<Record<string, unknown>>
  const isData =
    typeof at === 'number' &&
    typeof body === 'string' &&
    [firstAt, before].every((number) => number === undefined || typeof number === 'number') &&
    [state, reason].every((text) => text === undefined || typeof text === 'string')
  return isData ? (value as Data) : undefined
}

/**
 * The priority of what is due at this time, in microseconds since the epoch: pg-boss hands out the highest first, and what
 * has the same in the order of creation. To the second, so that the number lasts until 2098.
 */
export function priorityAt(at: number): number {
  return Math.max(-(2 ** 31), Math.min(ZERO - Math.floor(at / 1_000_000), FOREVER_SECONDS))
}

/** What is retried goes behind what was created in the same second, in microseconds. */
export const RETRIED_LATER = 1_000_000

/** Seconds since the epoch, in 2030. */
const ZERO = 1_900_000_000

/** Times that never are the same, in microseconds since the epoch. */
export function createStamps(clock: Clock): () => number {
  let last = 0
  return () => {
    last = Math.max(last + 1, Math.floor(clock.now()) * 1000)
    return last
  }
}

/** How long to wait until a time, in milliseconds: PostgreSQL adds it to its own time, so its clock need not agree. */
export function delayUntil(at: number, clock: Clock): number {
  return Math.max(0, Math.min(at - clock.now(), LONGEST_MS))
}

/** A hundred years: dates end somewhere. */
const LONGEST_MS = 100 * 365 * 24 * 60 * 60_000

/** Whole seconds, within what a column takes. */
export function secondsOf(ms: number): number {
  return Math.min(Math.ceil(ms / 1000), FOREVER_SECONDS)
}

/** 68 years; also the most that a column of whole numbers takes. */
export const FOREVER_SECONDS: number = 2 ** 31 - 1

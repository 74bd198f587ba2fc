/** Numbers, bytes, durations and times as text. */

import type { RowState } from '../wire.ts'

const NUMBER = new Intl.NumberFormat('en')
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY_MS = 24 * HOUR

/** `12,345`. */
export function formatNumber(value: number): string {
  return NUMBER.format(value)
}

/** `1 message`, `2 messages`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`
}

/** `812 B`, `4.2 KB`, `1.3 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  if (bytes < 1_000_000) return `${short(bytes / 1_000)} KB`
  return `${short(bytes / 1_000_000)} MB`
}

/** `0.4 ms`, `12 ms`, `1.3 s`, `4 min 10 s`, `3 h 12 min`, `2 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${ms < 10 ? short(ms) : Math.round(ms)} ms`
  if (ms < 10 * SECOND) return `${short(ms / SECOND)} s`
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`
  if (ms < HOUR) return pair(ms, MINUTE, 'min', SECOND, 's')
  if (ms < DAY_MS) return pair(ms, HOUR, 'h', MINUTE, 'min')
  return pair(ms, DAY_MS, 'd', HOUR, 'h')
}

/** `00:42`, `12:05`, `3:12:05`: of what is still to come, rounded up. */
export function formatCountdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / SECOND))
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const rest = `${pad(minutes)}:${pad(seconds % 60)}`
  return hours > 0 ? `${hours}:${rest}` : rest
}

/** `14:03:12`. */
export function formatTime(at: number): string {
  return CLOCK.format(at)
}

/** `14:03:12.042`. */
export function formatExactTime(at: number): string {
  return `${CLOCK.format(at)}.${String(Math.floor(at) % SECOND).padStart(3, '0')}`
}

/** `22 Nov`. */
export function formatDay(at: number): string {
  return DAY.format(at)
}

/** `2026-11-22 14:03:12.042 UTC`. */
export function formatInstant(at: number): string {
  return new Date(at).toISOString().replace('T', ' ').replace('Z', ' UTC')
}

/** `4 s ago`, `in 3 min`. */
export function formatAgo(at: number, now: number): string {
  const difference = now - at
  if (Math.abs(difference) < SECOND) return 'now'
  const text = formatDuration(Math.floor(Math.abs(difference) / SECOND) * SECOND)
  return difference < 0 ? `in ${text}` : `${text} ago`
}

/** A snake_case literal as words: `retries_exhausted` as `retries exhausted`. */
export function formatLiteral(literal: string): string {
  return literal.replaceAll('_', ' ')
}

/** The error of an attempt as words. A connection that was refused is not a message that was. */
export function formatAttemptError(error: string): string {
  return error === 'refused' ? 'connection refused' : formatLiteral(error)
}

/** The code of a row as words: while it waits, that of its latest attempt. */
export function formatCode(code: string, state: RowState): string {
  return state === 'waiting' ? formatAttemptError(code) : formatLiteral(code)
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${largeName}${rest > 0 ? ` ${rest} ${smallName}` : ''}`
}

function short(value: number): string {
  return value < 10 ? String(Math.round(value * 10) / 10) : String(Math.round(value))
}

function pad(value: number): string {
  return String(value).padStart(2, '0')
}

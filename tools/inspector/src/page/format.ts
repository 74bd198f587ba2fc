/** Formats numbers, bytes, durations, times and codes. */

import type { RowState } from '../wire.ts'

const NUMBER = new Intl.NumberFormat('en')
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' })
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' })
const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY_MS = 24 * HOUR

/** Formats a number: `12,345`. */
export function formatNumber(value: number): string {
  return NUMBER.format(value)
}

/** Formats a count with its unit: `1 message`, `2 messages`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${formatNumber(count)} ${count === 1 ? one : many}`
}

/** Formats a size: `812 B`, `4.2 KB`, `1.3 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`
  return bytes < 1_000_000 ? `${short(bytes / 1_000)} KB` : `${short(bytes / 1_000_000)} MB`
}

/** Formats a duration: `0.4 ms`, `12 ms`, `1.3 s`, `4 min 10 s`, `3 h 12 min`, `2 d 4 h`. */
export function formatDuration(ms: number): string {
  if (ms < SECOND) return `${short(ms)} ms`
  if (ms < MINUTE) return `${ms < 10 * SECOND ? short(ms / SECOND) : Math.floor(ms / SECOND)} s`
  const units = [
    [DAY_MS, 'd', HOUR, 'h'],
    [HOUR, 'h', MINUTE, 'min'],
    [MINUTE, 'min', SECOND, 's'],
  ] as const
  const [large, largeName, small, smallName] = units.find(([unit]) => ms >= unit) ?? units[2]
  const rest = Math.floor((ms % large) / small)
  return `${Math.floor(ms / large)} ${largeName}${rest > 0 ? ` ${rest} ${smallName}` : ''}`
}

function short(value: number): string {
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value))
}

/** Formats the time that remains, rounded up: `00:42`, `12:05`, `3:12:05`. */
export function formatCountdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / SECOND))
  const text = new Date(seconds * SECOND).toISOString().slice(14, 19)
  return seconds < 3_600 ? text : `${Math.floor(seconds / 3_600)}:${text}`
}

/** Formats a time to the second: `14:03:12`. */
export function formatTime(at: number): string {
  return CLOCK.format(at)
}

/** Formats a time to the millisecond: `14:03:12.042`. */
export function formatExactTime(at: number): string {
  return `${CLOCK.format(at)}.${String(Math.floor(at) % SECOND).padStart(3, '0')}`
}

/** Formats a day: `22 Nov`. */
export function formatDay(at: number): string {
  return DAY.format(at)
}

/** Formats a date and time in UTC: `2026-11-22 14:03:12.042 UTC`. */
export function formatInstant(at: number): string {
  return new Date(at).toISOString().replace('T', ' ').replace('Z', ' UTC')
}

/** Formats a time relative to `now`: `4 s ago`, `in 3 min`. */
export function formatAgo(at: number, now: number): string {
  const seconds = Math.floor(Math.abs(now - at) / SECOND)
  if (seconds === 0) return 'now'
  const text = formatDuration(seconds * SECOND)
  return now < at ? `in ${text}` : `${text} ago`
}

/** Returns the shortest beginning that distinguishes a name from the others: `co` for `collector` if another name is `crm`. */
export function formatInitials(name: string, names: readonly string[]): string {
  const others = names.filter((other) => other !== name)
  const beginnings = Array.from(name, (_, index) => name.slice(0, index + 1))
  return beginnings.find((beginning) => !others.some((other) => other.startsWith(beginning))) ?? name
}

export function formatLiteral(literal: string): string {
  return literal.replaceAll('_', ' ')
}

/** Describes the error of an attempt in words. The error `refused` means that the connection was refused, not the message. */
export function formatAttemptError(error: string): string {
  return error === 'refused' ? 'connection refused' : formatLiteral(error)
}

/** Describes the code of a row in words. While the message waits, the code is the error of the latest attempt. */
export function formatCode(code: string, state: RowState): string {
  return state === 'waiting' ? formatAttemptError(code) : formatLiteral(code)
}

/** Compares messages with a pattern, and says why none was delivered: what did arrive, what became of it, and what to do. */

import { inspect } from 'node:util'
import type { FailureReason, SkipReason } from '../../destination/observer.ts'
import { escaped } from '../../options/warning.ts'
import type { Attempt } from '../../sender/api.ts'
import type { PlatformMessage, RefusedCall } from './api.ts'

/** What is known when `delivered` gives up. */
export interface Known {
  readonly pattern: object
  readonly messages: readonly PlatformMessage[]
  readonly refused: readonly RefusedCall[]
  /** Where clients post. */
  readonly endpoint: string
  /** The platform's time, in milliseconds since the epoch. */
  readonly now: number
  /** Whether an attempt or a request has no answer yet. */
  readonly isBusy: boolean
  /** Whether the destination is enabled. */
  readonly isEnabled: boolean
}

/** The most messages and refused calls that are listed. */
const MOST = 10
/** The most characters of a value, and of a response. */
const MOST_CHARACTERS = 120

const REASONS: Readonly<Record<FailureReason | SkipReason, string>> = {
  refused: 'failed: the response is final, it is not sent again.',
  window_over: 'failed: its four hours are over.',
  switched_off: 'was not sent: the destination is disabled.',
  circuit_open: 'failed: the circuits of its URLs were open when its four hours ended.',
  unreadable: 'failed: the stored job cannot be read.',
  not_selected: 'was not sent: its `integrations` exclude Webhooks.',
  historical: 'was not sent: it is older than `historicalAfterMs`.',
}

/** Describes the failure in lines. */
export function describeFailure(known: Known): string {
  const { pattern, messages, refused, endpoint } = known
  const wanted = Object.keys(pattern).length === 0 ? 'message' : `message like ${show(pattern)}`
  if (messages.length + refused.length === 0) {
    const advice = 'Check that the client posts there, and flush it: clients hold calls back to send several at once.'
    return `No ${wanted} was delivered. Nothing reached ${endpoint}. ${advice}`
  }
  const compared = messages.map((message) => ({ message, difference: findDifference(message.message, pattern) }))
  const matching = compared.filter(({ difference }) => difference === undefined)
  const others = compared.filter(({ difference }) => difference !== undefined).sort(closestFirst)
  const lines = [
    ...matching.map(({ message }) => `${titleOf(message)} ${describe(message, known)}`),
    ...refused.map(describeRefused),
    ...others.map(({ message, difference }) => `${titleOf(message)} differs: ${describeDifference(difference)}`),
  ]
  const more = lines.length > MOST ? [`- … and ${lines.length - MOST} more`] : []
  return [`No ${wanted} was delivered. Got:`, ...lines.slice(0, MOST).map((line) => `- ${line}`), ...more].join('\n')
}

/** Those of the wanted type and event first. */
function closestFirst(
  one: { difference?: Difference | undefined },
  other: { difference?: Difference | undefined },
): number {
  const rank = (path = ''): number => ['event', 'type'].indexOf(path)
  return rank(one.difference?.path) - rank(other.difference?.path)
}

function titleOf({ message }: PlatformMessage): string {
  const name = 'event' in message ? ` ${show(message.event)}` : ''
  return `${message.type}${name} of ${escaped(String(message.userId ?? message.anonymousId))}`
}

function describe({ status, attempts, retryAt, reason }: PlatformMessage, known: Known): string {
  if (status === 'delivered') return 'was delivered.' // At the last moment.
  return [describeState(), ...describeAttempts(attempts)].join(' ')

  function describeState(): string {
    if (reason !== undefined) return REASONS[reason]
    const leftMs = retryAt === undefined ? 0 : retryAt.getTime() - known.now
    if (leftMs > 0) return `waits to be retried: call platform.advance(${leftMs}).`
    if (known.isBusy) return 'has no response yet. Raise `timeoutMs`, or let it time out: call platform.advance(5000).'
    if (!known.isEnabled) return 'waits: the destination is disabled.'
    return 'waits: the circuit of its URL is open, which is probed every 30 seconds. Call platform.advance(30000).'
  }
}

function describeAttempts(attempts: readonly Attempt[]): string[] {
  const last = attempts.at(-1)
  if (last === undefined) return []
  const latest = attempts.filter(({ at }) => at.getTime() === last.at.getTime()) // One for each URL.
  const count = attempts.length > latest.length ? [`${attempts.length} attempts, the last:`] : []
  return [...count, ...latest.map(describeAttempt)]
}

function describeAttempt({ url, status, error, reason, body }: Attempt): string {
  if (status === undefined) return `${url} did not respond: ${escaped(reason ?? String(error))}`
  return `${url} answered ${status}${body === '' ? '.' : `: ${escaped(cut(body))}`}`
}

function describeRefused({ path, status, code, detail, index }: RefusedCall): string {
  if (index !== undefined) return `call ${index} of a batch was refused with ${code}: ${escaped(detail)}`
  return `a request to ${escaped(path)} was refused with ${status} ${code}: ${escaped(detail)}`
}

function describeDifference(difference: Difference | undefined): string {
  return difference === undefined
    ? ''
    : `\`${difference.path}\` is ${show(difference.found)}, not ${show(difference.expected)}.`
}

function show(value: unknown): string {
  return escaped(cut(toJson(value)))
}

/** As JSON, and what JSON has no form for as JavaScript shows it: matchers, regular expressions, a BigInt. */
function toJson(value: unknown): string {
  try {
    const shown = plain('', value)
    return shown === value ? (JSON.stringify(value, plain) ?? String(value)) : String(shown)
  } catch {
    return inspect(value) // It holds itself.
  }
}

function plain(_key: string, value: unknown): unknown {
  if (isMatcher(value)) return value.toAsymmetricMatcher?.() ?? String(value)
  return value instanceof RegExp || typeof value === 'bigint' ? String(value) : value
}

function cut(text: string): string {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text
}

/** Where a value differs from a pattern. */
interface Difference {
  /** `properties.items.0.sku`; empty for the value itself. */
  readonly path: string
  readonly found: unknown
  readonly expected: unknown
}

/** Finds the first difference; undefined when all that the pattern names is equal. Lists must be as long. */
export function findDifference(found: unknown, expected: unknown, path = ''): Difference | undefined {
  if (isMatcher(expected)) return expected.asymmetricMatch(found) ? undefined : { path, found, expected }
  if (typeof expected !== 'object' || expected === null) {
    return Object.is(found, expected) ? undefined : { path, found, expected }
  }
  const isSameKind = typeof found === 'object' && found !== null && Array.isArray(found) === Array.isArray(expected)
  if (!isSameKind) return { path, found, expected }
  if (Array.isArray(found) && found.length !== (expected as unknown[]).length) return { path, found, expected }
  for (const [key, part] of Object.entries(expected)) {
    const value = Object.hasOwn(found, key) ? (found as Record<string, unknown>)[key] : undefined
    const difference = findDifference(value, part, path === '' ? key : `${path}.${key}`)
    if (difference !== undefined) return difference
  }
  return undefined
}

/** As `expect.any(Number)` of Vitest and Jest. */
interface Matcher {
  asymmetricMatch(value: unknown): boolean
  /** `Any<Number>` */
  toAsymmetricMatcher?(): string
}

/** Whether the value decides itself what matches it. */
function isMatcher(value: unknown): value is Matcher {
  return typeof (value as Partial<Matcher> | null)?.asymmetricMatch === 'function'
}

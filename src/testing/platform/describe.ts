/** Compares messages with a pattern. If no matching message was delivered, explains what arrived, what happened to it, and what to do. */

import { inspect } from 'node:util'
import { hasMethods } from '../../kit/checks.ts'
import { escaped } from '../../kit/warning.ts'
import type { FailureReason, SkipReason } from '../../send/destination-events.ts'
import type { Attempt } from '../../send/sender-types.ts'
import type { PlatformMessage, RefusedCall } from './platform-types.ts'

interface PlatformState {
  readonly pattern: object
  readonly messages: readonly PlatformMessage[]
  readonly refused: readonly RefusedCall[]
  readonly endpoint: string
  /** The platform's time, in milliseconds since the epoch. */
  readonly now: number
  readonly isBusy: boolean
  readonly isEnabled: boolean
}

const MAX_LINES = 10
const MAX_CHARACTERS = 120

const REASONS: Readonly<Record<FailureReason | SkipReason, string>> = {
  refused: 'failed: the response is final, so the message is not sent again.',
  window_over: 'failed: its four hours are over.',
  switched_off: 'was not sent: the destination is disabled.',
  circuit_open: 'failed: the circuits of its URLs were open when its four hours ended.',
  unreadable: 'failed: the stored job cannot be read.',
  not_selected: 'was not sent: its `integrations` exclude Webhooks.',
  historical: 'was not sent: it is older than `historicalAfterMs`.',
  filtered: 'was not sent: a `filter` left it out.',
  transform_failed: 'failed: its `filter` or `transform` threw.',
}

export function describeFailure(state: PlatformState): string {
  const { pattern, messages, refused, endpoint } = state
  const wanted = Object.keys(pattern).length === 0 ? 'message' : `message like ${show(pattern)}`
  if (messages.length + refused.length === 0) {
    const advice = 'Check that the client posts there, and flush it: clients buffer calls to send several at once.'
    return `No ${wanted} was delivered. Nothing reached ${endpoint}. ${advice}`
  }
  const matching: string[] = []
  const others: { readonly line: string; readonly rank: number }[] = []
  for (const message of messages) {
    const difference = findDifference(message.message, pattern)
    if (difference === undefined) matching.push(`${titleOf(message)} ${describeMessage(message, state)}`)
    else {
      const { path, found, expected } = difference
      const line = `${titleOf(message)} differs: \`${path}\` is ${show(found)}, not ${show(expected)}.`
      others.push({ line, rank: ['event', 'type'].indexOf(path) })
    }
  }
  others.sort((one, other) => one.rank - other.rank) // Messages of another event come next to last, and messages of another type last.
  const lines = [...matching, ...refused.map(describeRefused), ...others.map(({ line }) => line)]
  const more = lines.length > MAX_LINES ? [`- … and ${lines.length - MAX_LINES} more`] : []
  const shown = lines.slice(0, MAX_LINES).map((line) => `- ${line}`)
  return [`No ${wanted} was delivered. Got:`, ...shown, ...more].join('\n')
}

function titleOf({ message }: PlatformMessage): string {
  const name = 'event' in message ? ` ${show(message.event)}` : ''
  return `${message.type}${name} of ${escaped(String(message.userId ?? message.anonymousId))}`
}

function describeMessage(message: PlatformMessage, state: PlatformState): string {
  const { status, attempts } = message
  if (status === 'delivered') return 'was delivered.' // The delivery came after the wait had ended, but before this text was written.
  const last = attempts.at(-1)
  const latest = attempts.filter(({ at }) => at.getTime() === last?.at.getTime()) // The attempts of the last round.
  const count = attempts.length > latest.length ? [`${attempts.length} attempts, the last:`] : []
  return [explainStatus(message, state), ...count, ...latest.map(describeAttempt)].join(' ')
}

function explainStatus({ retryAt, reason }: PlatformMessage, { now, isBusy, isEnabled }: PlatformState): string {
  if (reason !== undefined) return REASONS[reason]
  const leftMs = retryAt === undefined ? 0 : retryAt.getTime() - now
  if (leftMs > 0) return `waits to be retried: call platform.advance(${leftMs}).`
  if (isBusy) return 'has no response yet. Raise `timeoutMs`, or let the attempt time out: call platform.advance(5000).'
  if (!isEnabled) return 'waits: the destination is disabled. Call platform.destination.enable().'
  return 'waits: the circuit of its URL is open, and the URL is probed every 30 seconds. Call platform.advance(30000).'
}

function describeAttempt({ url, status, error, reason, body }: Attempt): string {
  if (status === undefined) return `${url} did not respond: ${escaped(reason ?? String(error))}`
  return `${url} answered ${status}${body === '' ? '.' : `: ${escaped(shorten(body))}`}`
}

function describeRefused({ path, status, code, detail, index }: RefusedCall): string {
  if (index !== undefined) return `call ${index} of a batch was refused with ${code}: ${escaped(detail)}`
  return `a request to ${escaped(path)} was refused with ${status} ${code}: ${escaped(detail)}`
}

/** Shows a value as JSON. Matchers, regular expressions and BigInts, which JSON lacks, are shown as text. */
function show(value: unknown): string {
  const replace = (_key: string, value: unknown): unknown => {
    if (isMatcher(value)) return value.toAsymmetricMatcher?.() ?? String(value)
    return value instanceof RegExp || typeof value === 'bigint' ? String(value) : value
  }
  try {
    const replaced = replace('', value)
    const text = replaced === value ? (JSON.stringify(value, replace) ?? String(value)) : String(replaced)
    return escaped(shorten(text))
  } catch {
    return escaped(shorten(inspect(value))) // JSON.stringify fails for a value that contains itself.
  }
}

function shorten(text: string): string {
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
}

interface Difference {
  /** The path of the field, such as `properties.items.0.sku`; empty for the value itself. */
  readonly path: string
  readonly found: unknown
  readonly expected: unknown
}

/** Finds the first difference. Returns undefined when every field of the pattern matches. Lists must have the same length. */
export function findDifference(found: unknown, expected: unknown, path = ''): Difference | undefined {
  const difference = { path, found, expected }
  if (isMatcher(expected)) return expected.asymmetricMatch(found) ? undefined : difference
  if (typeof expected !== 'object' || expected === null) return Object.is(found, expected) ? undefined : difference
  const isSameKind = typeof found === 'object' && found !== null && Array.isArray(found) === Array.isArray(expected)
  if (!isSameKind) return difference
  if (Array.isArray(found) && Array.isArray(expected) && found.length !== expected.length) return difference
  for (const [key, part] of Object.entries(expected)) {
    const value: unknown = Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined
    const inner = findDifference(value, part, path === '' ? key : `${path}.${key}`)
    if (inner !== undefined) return inner
  }
  return undefined
}

interface Matcher {
  asymmetricMatch(value: unknown): boolean
  toAsymmetricMatcher?(): string
}

function isMatcher(value: unknown): value is Matcher {
  return hasMethods(value, ['asymmetricMatch'])
}

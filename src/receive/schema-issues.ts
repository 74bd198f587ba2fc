/**
 * Describes the issues that a schema found. Anyone may see the codes of issues, but only the owner of the endpoint may see where they are,
 * because the keys of a message are data, too.
 */

import type { SchemaIssue } from '../protocol/error.ts'

const MAX_ISSUES = 3
/** The maximum number of keys of a path to show. Without a limit, the path in a deeply nested body could be very long. */
const MAX_DEPTH = 10
const MAX_CODES = 5

/** Counts issues by their codes: `3 issues: invalid_type (2), too_small`. */
export function countIssues(issues: readonly SchemaIssue[]): string {
  const counts = Map.groupBy(issues, codeOf)
  const codes = [...counts].flatMap(([code, { length }]) => code && (length === 1 ? code : `${code} (${length})`))
  const shown = codes.filter((code) => code !== undefined).slice(0, MAX_CODES)
  return `${issues.length} ${issues.length === 1 ? 'issue' : 'issues'}${shown.length === 0 ? '' : `: ${shown.join(', ')}`}`
}

/** Lists where the first issues are: `items.0.sku (too_small), prices.* (invalid_type), and 2 more`. */
export function locateIssues(issues: readonly SchemaIssue[]): string {
  const shown = issues.slice(0, MAX_ISSUES).map((issue) => {
    const { keys, code } = readIssue(issue)
    const names = [...keys.slice(0, MAX_DEPTH).map(showKey), ...(keys.length > MAX_DEPTH ? ['…'] : [])]
    return `${names.join('.') || 'the whole value'}${code === undefined ? '' : ` (${code})`}`
  })
  const more = issues.length - shown.length
  return [...new Set(shown), ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

/** Reads the path and the code of an issue. In the path, indexes stay numbers, and keys that do not look like field names become `*`. */
export function readIssue(issue: SchemaIssue): {
  readonly keys: readonly (string | number)[]
  readonly code: string | undefined
} {
  const keys = (issue.path ?? []).map((part) => (typeof part === 'object' ? part.key : part))
  return { keys: keys.map((key) => (typeof key === 'number' ? key : showKey(key))), code: codeOf(issue) }
}

/**
 * Returns the code of an issue. Standard Schema does not define codes: zod and arktype call the field `code`, and valibot calls it `type`.
 */
function codeOf(issue: SchemaIssue): string | undefined {
  const { code, type }: SchemaIssue & { readonly code?: unknown; readonly type?: unknown } = issue
  const name = code ?? type
  return typeof name === 'string' && /^[a-z][\w.-]{0,39}$/i.test(name) ? name : undefined
}

/** Returns a key that looks like the name of a field. Returns `*` for any other key, such as an address, a card number or a log line. */
function showKey(key: PropertyKey): string {
  const name = String(key)
  return FIELD_NAME.test(name) ? name : '*'
}

const FIELD_NAME = /^(?!.*\p{Nd}{4})[\p{L}\p{M}\p{Nd} _-]{1,40}$/u

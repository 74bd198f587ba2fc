/** What a schema found, in words that hold nothing of the message: the codes, and paths of which only names of the schema are shown. */

import type { SchemaIssue } from '../message/error.ts'

/** Validates as a schema of Standard Schema does. */
type ValidateValue = (value: unknown) => Found | Promise<Found>
type Found = { readonly issues?: readonly SchemaIssue[] | undefined }

const MAX_ISSUES = 3
/** So many keys of a message are looked at, and for so long: each has the schema validate once more. */
const MAX_KEYS = 8
const MAX_MS = 20
/** A value may be nested as deeply as its body is long. */
const MAX_DEPTH = 10

/** `items.0.sku (too_small), prices.* (invalid_type), and 2 more`. */
export async function describeIssues(
  value: unknown,
  validate: ValidateValue,
  issues: readonly SchemaIssue[],
): Promise<string> {
  const shown: string[] = []
  let left = MAX_KEYS
  const end = performance.now() + MAX_MS
  const mayLook = (): boolean => left >= 0 && performance.now() < end
  for (const issue of issues.slice(0, MAX_ISSUES)) {
    const path = keysOf(issue)
    const names: string[] = []
    for (const [index, key] of path.slice(0, MAX_DEPTH).entries()) {
      const isKey = typeof key === 'string'
      left -= isKey ? 1 : 0
      const isShown = isKey ? mayLook() && (await isNamed(value, validate, path, index)) : typeof key === 'number'
      names.push(isShown ? String(key) : '*')
    }
    if (path.length > MAX_DEPTH) names.push('…')
    const code = codeOf(issue)
    shown.push(`${names.join('.') || 'the whole'}${code === undefined ? '' : ` (${code})`}`)
  }
  const more = issues.length - shown.length
  return [...new Set(shown), ...(more > 0 ? [`and ${more} more`] : [])].join(', ')
}

/** Libraries have a code beside what the standard asks for: zod and arktype as `code`, valibot as `type`. */
export function codeOf(issue: SchemaIssue): string | undefined {
  const { code, type } = issue as SchemaIssue & { readonly code?: unknown; readonly type?: unknown }
  const found = code ?? type
  return typeof found === 'string' && /^[a-z][\w.-]{0,39}$/i.test(found) ? found : undefined
}

/**
 * Whether the schema names a key, as that of an object; the keys of a record are data. A key of the same form is tried in its place: a
 * schema that finds a fault there, too, takes any.
 */
async function isNamed(
  value: unknown,
  validate: ValidateValue,
  path: readonly PropertyKey[],
  index: number,
): Promise<boolean> {
  const key = path[index] as string
  const other = similar(key)
  if (other === key) return false
  const before = path.slice(0, index)
  const { issues = [] } = await validate(rename(value, before, key, other))
  return !issues.some((issue) => {
    const keys = keysOf(issue)
    return keys[index] === other && before.every((part, at) => keys[at] === part)
  })
}

export function keysOf({ path = [] }: SchemaIssue): readonly PropertyKey[] {
  return path.map((part) => (typeof part === 'object' ? part.key : part))
}

/** Another key of the same form: its last letter or digit is the next one. */
function similar(key: string): string {
  return key.replace(/[a-z\d](?=[^a-z\d]*$)/i, (last) => {
    if (/[9z]/i.test(last)) return last === '9' ? '0' : last === 'z' ? 'a' : 'A'
    return String.fromCharCode(last.charCodeAt(0) + 1)
  })
}

function rename(value: unknown, [first, ...rest]: readonly PropertyKey[], key: string, other: string): unknown {
  if (typeof value !== 'object' || value === null) return value
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<PropertyKey, unknown>
  if (first !== undefined) copy[first] = rename(copy[first], rest, key, other)
  else {
    copy[other] = copy[key]
    delete copy[key]
  }
  return copy
}

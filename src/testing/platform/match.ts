/** Compares a message with a part of one, and says where they differ. */

/** Where a value differs from a pattern. */
export interface Difference {
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
export function isMatcher(value: unknown): value is Matcher {
  return typeof (value as Partial<Matcher> | null)?.asymmetricMatch === 'function'
}

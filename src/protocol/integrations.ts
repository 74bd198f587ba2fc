/** Decides which destinations a call is meant for ("Go client library", Selecting destinations). */

/**
 * Checks whether a call is meant for a destination. The key with the destination's name decides; without that key, `All: false` excludes
 * the destination. An object of options in place of a boolean counts as true.
 */
export function isMeantFor(name: string, integrations: unknown): boolean {
  if (typeof integrations !== 'object' || integrations === null) return true
  const choice = readOwn(integrations, name) ?? readOwn(integrations, 'All')
  return choice !== false
}

function readOwn(integrations: object, name: string): unknown {
  return Object.hasOwn(integrations, name) ? Reflect.get(integrations, name) : undefined
}

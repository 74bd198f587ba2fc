/** Which destinations a call is meant for ("Go client library", Selecting destinations). */

/**
 * Whether a call is meant for the destination of this name, which is case-sensitive. Its own key decides; without
 * one, `All: false` keeps the call away; else every destination gets it. Options in place of a boolean mean yes.
 */
export function isMeantFor(name: string, integrations: unknown): boolean {
  if (typeof integrations !== 'object' || integrations === null) return true
  const own = read(integrations, name)
  if (own !== undefined && own !== null) return own !== false
  return read(integrations, 'All') !== false
}

function read(integrations: object, name: string): unknown {
  return Object.hasOwn(integrations, name) ? Reflect.get(integrations, name) : undefined
}

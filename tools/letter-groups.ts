/** Groups dead letters for the tools: those with the same cause have the same name. */

export const MAX_ERROR = 200

/** Returns the reason and the error, without ids and numbers, which differ between letters. */
export function groupOf({ reason, error }: { readonly reason: string; readonly error: string }): string {
  const same = error.slice(0, MAX_ERROR).replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+/gi, '#')
  return `${reason}: ${same}`
}

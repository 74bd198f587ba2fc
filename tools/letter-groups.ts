/** Names groups of dead letters for the tools: letters with the same cause get the same name. */

export const MAX_ERROR = 200

/** Returns a name made of the reason and the error. Ids and numbers are replaced, because they differ between letters. */
export function groupOf({ reason, error }: { readonly reason: string; readonly error: string }): string {
  const same = error.slice(0, MAX_ERROR).replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+/gi, '#')
  return `${reason}: ${same}`
}

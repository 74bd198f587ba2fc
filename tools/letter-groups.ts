/** How the tools group dead letters: those with one cause have one name. */

export const MAX_ERROR = 200

/** The reason and the error, without the ids and numbers in which errors differ. */
export function groupOf({ reason, error }: { readonly reason: string; readonly error: string }): string {
  const same = error.slice(0, MAX_ERROR).replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+/gi, '#')
  return `${reason}: ${same}`
}

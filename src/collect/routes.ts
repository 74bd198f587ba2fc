/** The paths of the collection API: paths for a batch, and paths for a single call of each type. */

import { CALL_TYPES, type CallType } from '../protocol/type-table.ts'

export type Route = 'batch' | CallType

export const ROUTES: ReadonlyMap<string, Route> = new Map([
  ...toPaths('batch', ['batch', 'b', 'import']),
  ...CALL_TYPES.flatMap((type) => toPaths(type, [type, type.charAt(0)])), // Client libraries in browsers use the one-letter paths.
])

function toPaths(route: Route, names: readonly string[]): (readonly [path: string, route: Route])[] {
  return names.map((name) => [`/v1/${name}`, route])
}

/** The paths of the collection API: which takes a batch, and which one call of which type. */

import { isMessageType, type MessageType } from '../protocol/message.ts'

/** The type of a call; a deletion is none, nobody with a public write key may ask for one. */
export type CallType = Exclude<MessageType, 'delete'>

/** What a path takes. */
export type Route = 'batch' | CallType

/** The second name of each is the short one that clients in browsers use. */
const NAMES: Readonly<Record<Route, readonly string[]>> = {
  batch: ['batch', 'b', 'import'],
  identify: ['identify', 'i'],
  track: ['track', 't'],
  page: ['page', 'p'],
  screen: ['screen', 's'],
  group: ['group', 'g'],
  alias: ['alias', 'a'],
}

/** What each path takes. */
export const ROUTES: ReadonlyMap<string, Route> = new Map(
  Object.entries(NAMES).flatMap(([route, names]) => names.map((name) => [`/v1/${name}`, route as Route])),
)

/** The types of calls, for a message to a person. */
export const CALL_TYPES: string = Object.keys(NAMES).slice(1).join(', ')

/** Whether this is one of the six types of calls. */
export function isCallType(type: unknown): type is CallType {
  return isMessageType(type) && type !== 'delete'
}

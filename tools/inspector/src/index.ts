/**
 * A page that shows what receivers, destinations and collectors do: messages, queues, dead letters.
 *
 * @module hookline/inspector
 */

export type {
  AccessRequest,
  Authorize,
  Inspector,
  InspectorOptions,
  KeepOptions,
  ListenOptions,
  OneOrNamed,
} from './api.ts'
export { createInspector } from './endpoint/inspector.ts'
export type { Access } from './wire.ts'

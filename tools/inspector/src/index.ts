/**
 * A page that shows the messages, queues and dead letters of receivers, destinations and collectors.
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

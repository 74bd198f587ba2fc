/**
 * A page that shows what receivers, destinations and collectors do: messages, queues, dead letters.
 *
 * @module hookline/inspector
 */

export type { AccessRequest, Authorize, Inspector, InspectorOptions, KeepOptions, OneOrNamed } from './inspector/api.ts'
export { createInspector } from './inspector/endpoint/inspector.ts'
export type { Access } from './inspector/wire.ts'

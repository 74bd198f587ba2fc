/**
 * A page that shows what receivers, destinations and collectors do: messages, queues, dead letters.
 *
 * @module hookline/inspector
 */

export type { AccessRequest, Authorize, Inspector, InspectorOptions, KeepOptions, OneOrNamed } from './inspector/api.ts'
export { pageFiles } from './inspector/page-files.ts'
export type { Access } from './inspector/wire.ts'

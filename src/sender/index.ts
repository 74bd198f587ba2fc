/**
 * The outbound side: messages as signed POSTs, once with createSender, or with four hours of retries with createDestination.
 *
 * @module hookline/sender
 */

export type {
  AliasCall,
  CallActor,
  CallOptions,
  Calls,
  DeleteCall,
  GroupCall,
  IdentifyCall,
  PageCall,
  ScreenCall,
  TrackCall,
} from '../protocol/calls.ts'
export type { Clock } from '../protocol/clock.ts'
export type { DispatcherLike } from '../protocol/post.ts'
export type * from './api.ts'
export { createDestination } from './destination.ts'
export type { DestinationOptions } from './destination-options.ts'
export { createSender, type RequestOptions, type Sender, type SenderRequest, type SendOptions } from './sender.ts'
export type { SenderOptions } from './sender-options.ts'
export type { Tampering } from './tamper.ts'
export type { Webhook } from './webhooks.ts'

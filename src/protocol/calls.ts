/** The calls that a program makes, from which messages are composed. Types only. */

import type { Context, Fields, PageProperties } from './message.ts'

/** Fields that every call may carry. */
export interface CallOptions {
  /** The time of the event: a Date or ISO 8601 text. Text without a zone is read as UTC. Default: now. */
  readonly timestamp?: string | Date
  /** The identifier of the call. Default: a random UUID. */
  readonly messageId?: string
  /** Information about the circumstances of the call. */
  readonly context?: Context
  /**
   * The destinations that get the call, by their case-sensitive names. `All: false` excludes every destination that is not set to true ("Go
   * client library", Selecting destinations). Default: all.
   */
  readonly integrations?: Fields
}

/** The user of a call: a `userId`, an `anonymousId` while the user is unknown, or both. */
export type CallActor =
  | { readonly userId: string; readonly anonymousId?: string | null }
  | { readonly userId?: null; readonly anonymousId: string }

/** Records that a user viewed a web page. */
export type PageCall = CallOptions &
  CallActor & {
    readonly name?: string
    readonly category?: string
    readonly properties?: PageProperties
  }

/** Records that a user viewed a screen of an app. */
export type ScreenCall = CallOptions & CallActor & { readonly name?: string; readonly properties?: Fields }

/** Sets the traits of a user. */
export type IdentifyCall = CallOptions & CallActor & { readonly traits?: Fields }

/** Records an action of a user. */
export type TrackCall = CallOptions & CallActor & { readonly event: string; readonly properties?: Fields }

/** Records that two identifiers belong to one user: `userId` replaces `previousId`. */
export type AliasCall = CallOptions & { readonly userId: string; readonly previousId: string }

/** Records that a user belongs to a group. */
export type GroupCall = CallOptions & CallActor & { readonly groupId: string; readonly traits?: Fields }

/** Requests the deletion of a user's data. */
export interface DeleteCall {
  readonly userId: string
  /** The time of the request: a Date or ISO 8601 text. Text without a zone is read as UTC. Default: now. */
  readonly timestamp?: string | Date
}

/** The call of each message type, keyed by type. */
export interface Calls {
  readonly page: PageCall
  readonly screen: ScreenCall
  readonly identify: IdentifyCall
  readonly track: TrackCall
  readonly alias: AliasCall
  readonly group: GroupCall
  readonly delete: DeleteCall
}

/** The calls a program makes: what becomes a message once the rest is filled in. Types only. */

import type { Context, Fields, PageProperties } from './message.ts'

/** What every call may say. */
export interface CallOptions {
  /** When it happened: a Date, or ISO 8601 (without a zone: UTC). Default: now. */
  readonly timestamp?: string | Date
  /** Identifies the call. Default: a random UUID. */
  readonly messageId?: string
  /** Information around the call. */
  readonly context?: Context
  /**
   * Which destinations get it, by their case-sensitive names; default: all. `All: false` keeps it from every
   * destination that is not set to true ("Go client library", Selecting destinations).
   */
  readonly integrations?: Fields
}

/** Who did it: a `userId`, or an `anonymousId` while the user is unknown; or both. */
export type CallActor =
  | { readonly userId: string; readonly anonymousId?: string | null }
  | { readonly userId?: null; readonly anonymousId: string }

/** A user looked at a web page. */
export type PageCall = CallOptions &
  CallActor & {
    readonly name?: string
    readonly category?: string
    readonly properties?: PageProperties
  }

/** A user looked at a screen of an app. */
export type ScreenCall = CallOptions & CallActor & { readonly name?: string; readonly properties?: Fields }

/** Says who a user is. */
export type IdentifyCall = CallOptions & CallActor & { readonly traits?: Fields }

/** A user did something. */
export type TrackCall = CallOptions & CallActor & { readonly event: string; readonly properties?: Fields }

/** Two identifiers are one user: `previousId` is `userId` from now on. */
export type AliasCall = CallOptions & { readonly userId: string; readonly previousId: string }

/** A user belongs to a group. */
export type GroupCall = CallOptions & CallActor & { readonly groupId: string; readonly traits?: Fields }

/** A user asked to be forgotten. */
export interface DeleteCall {
  readonly userId: string
  /** When the request was made: a Date, or ISO 8601 (without a zone: UTC). Default: now. */
  readonly timestamp?: string | Date
}

/** The call of each type. */
export interface Calls {
  readonly page: PageCall
  readonly screen: ScreenCall
  readonly identify: IdentifyCall
  readonly track: TrackCall
  readonly alias: AliasCall
  readonly group: GroupCall
  readonly delete: DeleteCall
}

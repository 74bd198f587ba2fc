/** The seven message types, one discriminated union on `type` ("Outbound event delivery", Delivered message fields). */

/** Free-form properties or traits: whatever JSON the sender recorded. */
export type Fields = Readonly<Record<string, unknown>>

/** Information around a call: device, IP address, page, library and more. Every key is optional. */
export interface Context {
  /** The device: a screen message carries `model` and `type`. */
  readonly device?: { readonly model?: string; readonly type?: string; readonly [key: string]: unknown }
  /** The operating system. */
  readonly os?: { readonly name?: string; readonly version?: string; readonly [key: string]: unknown }
  /** The application. */
  readonly app?: {
    readonly build?: string
    readonly name?: string
    readonly version?: string
    readonly [key: string]: unknown
  }
  /** The IP address of the user. */
  readonly ip?: string
  readonly [key: string]: unknown
}

/** What every message may carry. Fields this type does not name stay on the object. */
interface Common {
  /** Version of the format: the documents say 1; real senders also send 2 and "1.1". Absent on `delete`. */
  readonly version?: number | string
  /** When it happened: ISO 8601 with milliseconds and a `Z` zone. */
  readonly timestamp?: string
  /** Identifies the call, chosen by whoever recorded it. */
  readonly messageId?: string
  /** Information around the call. */
  readonly context?: Context
  /** Which destinations the call was meant for, by their case-sensitive names. */
  readonly integrations?: Fields
  /** Where the call was recorded: `server`, `browser`, `mobile`. */
  readonly channel?: string
  /** When it happened by the clock of the device. */
  readonly originalTimestamp?: string
  /** When the device sent it. */
  readonly sentAt?: string
  /** When the collection service received it. */
  readonly receivedAt?: string
}

/** Who did it: one of the two is always there. */
interface Actor {
  /** Identifier of the user in your database; null or absent while the user is unknown. */
  readonly userId?: string | null
  /** Identifier of a user who is not known yet; always there when there is no `userId`. */
  readonly anonymousId?: string | null
}

/** The keys of a page that have a meaning; others are allowed. */
export interface PageProperties {
  /** Path of the page's URL. */
  readonly path?: string
  /** URL of the page before. */
  readonly referrer?: string
  /** Title of the page. */
  readonly title?: string
  /** Full URL of the page. */
  readonly url?: string
  readonly [key: string]: unknown
}

/** A user looked at a web page. */
export interface PageMessage extends Common, Actor {
  readonly type: 'page'
  /** Name of the page. */
  readonly name?: string
  /** Category of the page. */
  readonly category?: string
  /** About the page. */
  readonly properties?: PageProperties
}

/** A user looked at a screen of an app. */
export interface ScreenMessage extends Common, Actor {
  readonly type: 'screen'
  /** Name of the screen. */
  readonly name?: string
  /** About the screen. */
  readonly properties?: Fields
}

/** Says who a user is; also sent when an audience or a computed trait of the user changes. */
export interface IdentifyMessage<Traits = Fields | undefined> extends Common, Actor {
  readonly type: 'identify'
  /** About the user. An audience is a boolean trait in snake_case: true in it, false not in it any more. */
  readonly traits: Traits
}

/** A user did something. */
export interface TrackMessage<Event extends string = string, Properties = Fields | undefined> extends Common, Actor {
  readonly type: 'track'
  /** Name of the event. */
  readonly event: Event
  /** About the event. */
  readonly properties: Properties
}

/** Two identifiers are one user. Both spellings are there, however it was sent. */
export interface AliasMessage extends Common {
  readonly type: 'alias'
  /** The identifier from before. */
  readonly previousId: string
  /** The new identifier. */
  readonly userId: string
  readonly anonymousId?: string | null
  /** The identifier from before, as the specification spells it. */
  readonly 'Previous ID': string
  /** The new identifier, as the specification spells it. */
  readonly 'User ID': string
}

/** A user belongs to a group: a company, an organization, an account, a project, a team. */
export interface GroupMessage<Traits = Fields | undefined> extends Common, Actor {
  readonly type: 'group'
  /** Identifier of the group. */
  readonly groupId: string
  /** About the group; key names may contain spaces. */
  readonly traits: Traits
}

/** A user asked to be forgotten: start your own deletion. Carries no `version`. */
export interface DeleteMessage extends Common {
  readonly type: 'delete'
  /** Whose data to delete. */
  readonly userId: string
  readonly anonymousId?: string | null
}

/** A message, told apart by `type`. */
export type Message =
  | PageMessage
  | ScreenMessage
  | IdentifyMessage
  | TrackMessage
  | AliasMessage
  | GroupMessage
  | DeleteMessage

/** `page`, `screen`, `identify`, `track`, `alias`, `group` or `delete`. */
export type MessageType = Message['type']

const TYPES: ReadonlySet<unknown> = new Set<MessageType>([
  'page',
  'screen',
  'identify',
  'track',
  'alias',
  'group',
  'delete',
])

/** The seven types, for a message to a person. */
export const TYPE_NAMES: string = [...TYPES].join(', ')

/** Whether this is one of the seven types. */
export function isMessageType(type: unknown): type is MessageType {
  return TYPES.has(type)
}

/** The seven messages as a union that is discriminated by `type` ("Outbound event delivery", Delivered message fields). Types only. */

/** Free-form properties or traits: an object of any JSON values. */
export type Fields = Readonly<Record<string, unknown>>

/** Information about the circumstances of a call: device, IP address, page, library and more. Every key is optional. */
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

/** Fields that every message may carry. Fields that are not named here stay on the object. */
interface Common {
  /** The version of the format: 1 in the specification; real senders also send 2 and "1.1". Absent on `delete`. */
  readonly version?: number | string
  /** The time of the event: ISO 8601 with milliseconds and the zone `Z`. */
  readonly timestamp?: string
  /** The identifier of the call, chosen where the call was recorded. */
  readonly messageId?: string
  /** Information about the circumstances of the call. */
  readonly context?: Context
  /** The destinations that the call is meant for, by their case-sensitive names. */
  readonly integrations?: Fields
  /** The kind of place where the call was recorded: `server`, `browser`, `mobile`. */
  readonly channel?: string
  /** The time of the event by the clock of the device. */
  readonly originalTimestamp?: string
  /** The time at which the device sent the call. */
  readonly sentAt?: string
  /** The time at which the collection service received the call. */
  readonly receivedAt?: string
}

/** The user of a message: one of the two ids is always present. */
interface Actor {
  /** The identifier of the user in your database; null or absent while the user is unknown. */
  readonly userId?: string | null
  /** The identifier of a user who is not known yet; always present if `userId` is not. */
  readonly anonymousId?: string | null
}

/** The properties of a page. Other keys are allowed. */
export interface PageProperties {
  /** The path of the page's URL. */
  readonly path?: string
  /** The URL of the previous page. */
  readonly referrer?: string
  /** The title of the page. */
  readonly title?: string
  /** The full URL of the page. */
  readonly url?: string
  readonly [key: string]: unknown
}

/** Reports that a user viewed a web page. */
export interface PageMessage extends Common, Actor {
  readonly type: 'page'
  /** The name of the page. */
  readonly name?: string
  /** The category of the page. */
  readonly category?: string
  /** The properties of the page. */
  readonly properties?: PageProperties
}

/** Reports that a user viewed a screen of an app. */
export interface ScreenMessage extends Common, Actor {
  readonly type: 'screen'
  /** The name of the screen. */
  readonly name?: string
  /** The properties of the screen. */
  readonly properties?: Fields
}

/** Reports the traits of a user. It is also sent when an audience or a computed trait of the user changes. */
export interface IdentifyMessage<Traits = Fields | undefined> extends Common, Actor {
  readonly type: 'identify'
  /** The traits of the user. An audience is a boolean trait in snake_case: true for a member, false after leaving. */
  readonly traits: Traits
}

/** Reports an action of a user. */
export interface TrackMessage<Event extends string = string, Properties = Fields | undefined> extends Common, Actor {
  readonly type: 'track'
  /** The name of the event. */
  readonly event: Event
  /** The properties of the event. */
  readonly properties: Properties
}

/** Reports that two identifiers belong to one user. Each id is present in both spellings, whichever spelling was sent. */
export interface AliasMessage extends Common {
  readonly type: 'alias'
  /** The previous identifier. */
  readonly previousId: string
  /** The new identifier. */
  readonly userId: string
  readonly anonymousId?: string | null
  /** The previous identifier, as the specification spells it. */
  readonly 'Previous ID': string
  /** The new identifier, as the specification spells it. */
  readonly 'User ID': string
}

/** Reports that a user belongs to a group, such as a company, an account, a project or a team. */
export interface GroupMessage<Traits = Fields | undefined> extends Common, Actor {
  readonly type: 'group'
  /** The identifier of the group. */
  readonly groupId: string
  /** The traits of the group; key names may contain spaces. */
  readonly traits: Traits
}

/** Requests the deletion of a user's data. Start your own deletion when it arrives. The message carries no `version`. */
export interface DeleteMessage extends Common {
  readonly type: 'delete'
  /** The identifier of the user whose data must be deleted. */
  readonly userId: string
  readonly anonymousId?: string | null
}

/** A message of any type; narrow it by `type`. */
export type Message =
  | PageMessage
  | ScreenMessage
  | IdentifyMessage
  | TrackMessage
  | AliasMessage
  | GroupMessage
  | DeleteMessage

/** The type of a message: `page`, `screen`, `identify`, `track`, `alias`, `group` or `delete`. */
export type MessageType = Message['type']

/** JSON that a sender signed and that is not one of the seven messages. Only a receiver with the option `custom` accepts it. */
export interface CustomMessage<Body = unknown> extends NoFields {
  readonly type: 'custom'
  /** The body, or an element of a batch; with a schema, the output of the schema. */
  readonly body: Body
}

/** Declares the fields of other messages as absent, so that code can read these fields before it narrows the type. */
type NoFields = { readonly [Field in keyof (Common & Actor)]?: never }

/** A message that a receiver accepts: one of the seven types or, with the option `custom`, any other JSON. */
export type ReceivedMessage = Message | CustomMessage

/** Creates the delivery that a handler gets. */

import { hash } from 'node:crypto'
import type { BodySource } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import { idOfDigest } from '../protocol/id.ts'
import type { Deadline } from './deadline.ts'
import type { Delivery, DeliveryMethod, DeliveryReplay, TransactionClient } from './delivery.ts'

/** A request as it arrived. Nothing in it has been authenticated yet. */
interface Arrival {
  readonly method: DeliveryMethod
  readonly headers: EndpointHeaders
  readonly bytes: Uint8Array
  readonly bodySource: BodySource
  /** When the request arrived, in milliseconds since the epoch. */
  readonly receivedAt: number
}

/** The result of verifying a request. */
export interface Proof {
  readonly verified: Delivery['verified']
  /**
   * The signature of the bytes, made with the oldest secret. For a sender that sends a secret in a header, the oldest accepted value of the
   * header is the secret. Undefined when nothing was checked.
   */
  readonly signature: string | undefined
  readonly secretIndex: number | undefined
  readonly source: string | undefined
}

export const NO_PROOF: Proof = { verified: false, signature: undefined, secretIndex: undefined, source: undefined }

/** The data from which a delivery is created. */
export interface DeliveryParts extends Arrival, Proof {
  /** The id of the delivery. Default: an id derived from the signature, or from the bytes when there is no signature. */
  readonly id?: string | undefined
  readonly replay?: DeliveryReplay | undefined
  readonly db?: TransactionClient | undefined
}

/** A delivery that computes costly fields only when they are read, from private data that JSON and the console do not show. */
export class ReceivedDelivery implements Delivery {
  readonly method: DeliveryMethod
  readonly headers: EndpointHeaders
  readonly bytes: Uint8Array
  readonly bodySource: BodySource
  readonly verified: Delivery['verified']
  readonly source: string | undefined
  readonly secretIndex: number | undefined
  readonly replay: DeliveryReplay | undefined
  readonly #parts: DeliveryParts
  readonly #deadline: Deadline | undefined
  #id: string | undefined

  /** @param deadline Aborts the signal of the delivery. Default: nothing aborts it. */
  constructor(parts: DeliveryParts, deadline?: Deadline) {
    this.method = parts.method
    this.headers = parts.headers
    this.bytes = parts.bytes
    this.bodySource = parts.bodySource
    this.verified = parts.verified
    this.source = parts.source
    this.secretIndex = parts.secretIndex
    this.replay = parts.replay
    this.#parts = parts
    this.#deadline = deadline
    this.#id = parts.id
  }

  get id(): string {
    this.#id ??= idOfDigest(digestOf(this.#parts))
    return this.#id
  }

  get receivedAt(): Date {
    return new Date(this.#parts.receivedAt)
  }

  get signal(): AbortSignal {
    return this.#deadline?.signal ?? new AbortController().signal
  }

  get db(): TransactionClient | undefined {
    return this.#parts.db
  }

  /** Returns the fields that a log may show, with the body as text. Leaves out the headers, because they may hold secrets. */
  toJSON(): object {
    const { id, method, source, receivedAt, verified, secretIndex, bodySource, bytes } = this
    return { id, method, source, receivedAt, verified, secretIndex, bodySource, bytes: new TextDecoder().decode(bytes) }
  }
}

/** Combines a key that the application chose with the source of the message, because two sources may use the same keys. */
export function keyWithin(source: string | undefined, key: string): string {
  return source === undefined ? key : JSON.stringify([source, key])
}

/** Returns at least 32 hexadecimal digits, the same for each retry of the delivery. */
function digestOf({ method, signature, source, bytes }: DeliveryParts): string {
  const other = method === 'POST' ? '' : `${method} ` // The same bytes sent with another method are not a copy.
  // Anyone can send unsigned bytes, so their id must never equal an id that is derived from a key of the application.
  if (signature === undefined) return sha256(`${other}unsigned ${sha256(bytes)}`)
  return source === undefined && other === '' ? signature : sha256(`${other}${signature}${source ?? ''}`)
}

function sha256(data: Uint8Array | string): string {
  return hash('sha256', data)
}

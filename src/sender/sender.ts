/** createSender(): one message, one round of POSTs to one to five URLs, now. */

import { Readable } from 'node:stream'
import { HooklineError } from '../protocol/error.ts'
import type { Message, MessageType } from '../protocol/message.ts'
import { refuseUnknown } from '../protocol/options.ts'
import type { Attempt, CallMethods, Round } from './api.ts'
import { type Composed, composeCall, composeMessage, toMethods } from './methods.ts'
import { createPostOffice } from './post-office.ts'
import { readSenderOptions, requireOptions, SENDER_OPTIONS, type SenderOptions } from './sender-options.ts'
import { type Tampering, tamper } from './tamper.ts'

/** How to send. */
export interface SendOptions {
  /** Sends it wrongly on purpose, to test an endpoint. */
  readonly tamper?: Tampering
}

/** Which request to make. */
export interface RequestOptions extends SendOptions {
  /** For which of the webhooks, counted from 0. Default 0. */
  readonly webhook?: number
}

/** A request that was made and not sent: what `fetch` takes, and any other client piece by piece. */
export interface SenderRequest {
  readonly url: string
  readonly method: 'POST'
  readonly headers: Readonly<Record<string, string>>
  /** The exact bytes of the body. */
  readonly body: Uint8Array<ArrayBuffer>
  /** Whether the body is to travel in chunks, without its length. */
  readonly isChunked: boolean
  /** How often it is to be sent. */
  readonly copies: number
}

/** Sends messages, each once to every URL. */
export interface Sender extends CallMethods<Round> {
  /**
   * Sends a whole message. What it lacks is filled in: `version`, `timestamp`, `messageId`, `context`.
   *
   * @throws TypeError (as a rejection) that names the field, for a message that is none.
   */
  send(message: Message, options?: SendOptions): Promise<Round>
  /**
   * Makes the request of a message and does not send it.
   *
   * @throws TypeError that names the field or the option.
   */
  request(message: Message, options?: RequestOptions): SenderRequest
  /** Waits for the rounds under way, and lets go of the connections. What is sent afterwards is refused. */
  close(): Promise<void>
}

/**
 * Creates a sender ("Outbound event delivery", Outbound delivery): each message is one signed POST to every URL at
 * once, with 5 seconds to answer. What comes of it is in the round; only your own mistakes throw.
 *
 * @throws TypeError that names the option.
 * @example
 * const sender = createSender({ webhooks: [{ url: 'http://localhost:3000/webhooks' }], sharedSecret: 'secret' })
 * const round = await sender.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 12 } })
 */
export function createSender(options: SenderOptions): Sender {
  requireOptions('createSender', options, SENDER_OPTIONS)
  const settings = readSenderOptions(options)
  const { targets, clock } = settings
  const office = createPostOffice(settings)
  let closed: Promise<void> | undefined

  async function send(compose: () => Composed, options: SendOptions): Promise<Round> {
    refuseUnknown(options, ['tamper'])
    const { message, bytes } = compose()
    if (closed !== undefined) throw new HooklineError('shutting_down', 'The sender is closed.')
    const { tamper: way } = options
    const attempts = await (way === undefined ? office.postAll(bytes, targets) : postTampered(bytes, way))
    return { ok: attempts.some(({ ok }) => ok), message, attempts }
  }

  async function postTampered(original: Uint8Array, way: Tampering): Promise<readonly Attempt[]> {
    const { bytes, signature, isChunked, copies } = tamper(original, office.sign(original), way)
    const rounds: Attempt[][] = []
    for (let copy = 0; copy < copies; copy++) {
      const posts = targets.map((target) => {
        const body = isChunked ? Readable.from(inChunks(bytes)) : bytes
        return office.post(target, { headers: office.headersFor(target, signature), body })
      })
      rounds.push(await Promise.all(posts))
    }
    return rounds.flat()
  }

  return {
    ...toMethods((type: MessageType, call) => send(() => composeCall(type, call, clock.now()), {})),
    send: (message, options = {}) => send(() => composeMessage(message, clock.now()), options),
    request(message, options = {}) {
      refuseUnknown(options, ['tamper', 'webhook'])
      const { webhook = 0, tamper: way } = options
      const target = targets[webhook]
      if (target === undefined) throw new TypeError(`webhook: must be a whole number below ${targets.length}.`)
      const original = composeMessage(message, clock.now()).bytes
      const { bytes, signature, isChunked, copies } = tamper(original, office.sign(original), way)
      const headers = toObject(office.headersFor(target, signature))
      return { url: target.url, method: 'POST', headers, body: new Uint8Array(bytes), isChunked, copies }
    },
    close: () => {
      closed ??= office.close()
      return closed
    },
  }
}

/** A body in two chunks at least, so that no length can be known beforehand. */
function* inChunks(bytes: Uint8Array): Generator<Uint8Array> {
  const middle = bytes.length >> 1
  yield bytes.subarray(0, middle)
  yield bytes.subarray(middle)
}

function toObject(headers: readonly string[]): Record<string, string> {
  const pairs = headers.flatMap((name, index) => (index % 2 === 0 ? [[name, headers[index + 1] as string]] : []))
  return Object.fromEntries(pairs as [string, string][])
}

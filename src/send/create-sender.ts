/** createSender(): posts each message in one round, immediately. */

import { Readable } from 'node:stream'
import { checkOptions, refuseUnknown, requireInteger, warnIfMisread } from '../kit/checks.ts'
import { HooklineError } from '../protocol/error.ts'
import { createMethods, MESSAGE_TYPES } from '../protocol/type-table.ts'
import { type Composed, composeCall, composeMessage } from './compose-call.ts'
import { readSenderOptions, SENDER_CHECKS, type SenderOptions } from './sender-options.ts'
import type { Attempt, Round, Sender, SendOptions } from './sender-types.ts'
import { type Tampering, tamper } from './tamper.ts'
import { createTransport } from './transport.ts'
import type { Target } from './webhooks.ts'

/**
 * Creates a sender ("Outbound event delivery", Outbound delivery). It signs each message and posts it to every URL at once, and each URL
 * has 5 seconds to respond. The resulting round reports all attempts; a failed attempt never causes a rejection.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const sender = createSender({ webhooks: [{ url: 'http://localhost:3000/webhooks' }], sharedSecret: 'secret' })
 * const round = await sender.track({ userId: 'user-1', event: 'Order Completed', properties: { total: 12 } })
 */
export function createSender(options: SenderOptions): Sender {
  checkOptions('createSender', options, SENDER_CHECKS)
  const settings = readSenderOptions(options)
  const { targets, clock } = settings
  warnIfMisread('sharedSecret', options.sharedSecret)
  const transport = createTransport(settings)
  let closed: Promise<void> | undefined

  /** Sends one message. Hot path: creates only one promise, which rejects with whatever `compose` throws. */
  function send(compose: () => Composed, options?: SendOptions): Promise<Round> {
    return new Promise((resolve, reject) => {
      if (options !== undefined) refuseUnknown(options, ['tamper'])
      const { message, bytes } = compose()
      if (closed !== undefined) {
        throw new HooklineError('shutting_down', 'The sender is closed. Create a new sender.')
      }
      const endRound = (attempts: readonly Attempt[]): void =>
        resolve({ ok: attempts.some(({ ok }) => ok), message, attempts })
      if (options?.tamper === undefined) transport.postRound(bytes, targets, endRound)
      else postTampered(bytes, options.tamper).then(endRound, reject)
    })
  }

  async function postTampered(original: Uint8Array, way: Tampering): Promise<readonly Attempt[]> {
    const { bytes, signature, isChunked, copies } = tamper(original, transport.sign(original), way)
    const rounds: Attempt[][] = []
    for (let copy = 0; copy < copies; copy++) {
      const posts = targets.map((target) => {
        const body = isChunked ? Readable.from(inChunks(bytes)) : bytes
        return transport.post(target, { headers: transport.headersFor(target, signature), body })
      })
      rounds.push(await Promise.all(posts))
    }
    return rounds.flat()
  }

  return {
    ...createMethods(MESSAGE_TYPES, (type, call) => send(() => composeCall(type, call, clock))),
    send: (message, options) => send(() => composeMessage(message, clock), options),
    request(message, options = {}) {
      refuseUnknown(options, ['tamper', 'webhook'])
      const { webhook = 0, tamper: way } = options
      const target = targets[requireInteger('webhook', webhook, 0, targets.length - 1)] as Target
      const original = composeMessage(message, clock).bytes
      const { bytes, signature, isChunked, copies } = tamper(original, transport.sign(original), way)
      const headers = joinPairs(transport.headersFor(target, signature))
      return { url: target.url, method: 'POST', headers, body: new Uint8Array(bytes), isChunked, copies }
    },
    close: () => {
      closed ??= transport.close()
      return closed
    },
  }
}

/** Yields the body in two chunks, so that undici does not know its length beforehand. */
function* inChunks(bytes: Uint8Array): Generator<Uint8Array> {
  const middle = bytes.length >> 1
  yield bytes.subarray(0, middle)
  yield bytes.subarray(middle)
}

/** Makes an object from alternating names and values. */
function joinPairs(list: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {}
  for (let index = 0; index < list.length; index += 2) headers[list[index] as string] = list[index + 1] as string
  return headers
}

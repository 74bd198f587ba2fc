/** What requests are answered: as the script says, as another endpoint answers, or as a correct receiver does. */

import type { ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { MISMATCH } from '../../../handling/lines.ts'
import { accepted, problem } from '../../../http/answer.ts'
import { bodyTooLarge } from '../../../http/body.ts'
import type { TextAnswer } from '../../../http/endpoint.ts'
import { HooklineError } from '../../../message/error.ts'
import { respond } from '../../../testing/respond.ts'
import { type Answer, BODY_LIMIT, headerOf, type KeptRequest } from '../kept.ts'
import type { Passage } from '../pass-on.ts'
import type { FailScript } from './fail-script.ts'
import type { Upload } from './uploads.ts'

/** The parts of a request that decide about its answer. */
export type Arrived = Upload & Pick<KeptRequest, 'method' | 'target' | 'headers' | 'verification'>

/** What was answered, and the body of the answer. */
export type Answered = Omit<Answer, 'durationMs'> & { readonly body?: Uint8Array }

/** How requests are answered; without either, 401 for a wrong signature, and 200. */
export interface AnswerSettings {
  readonly script?: FailScript | undefined
  readonly passage?: Passage | undefined
}

/** Answers a request, or does not. Never rejects. */
export async function answer(
  arrived: Arrived,
  { script, passage }: AnswerSettings,
  response: ServerResponse,
): Promise<Answered> {
  if (arrived.end === 'aborted') return unanswered('listen', 'The upload ended early.')
  if (arrived.end === 'too_large') return write(response, problem(bodyTooLarge(BODY_LIMIT)))
  const step = script?.()
  if (step?.response !== undefined) {
    void respond(step.response, response, () => response.socket?.resetAndDestroy())
    const status = step.response.kind === 'answer' ? step.response.answer.status : undefined
    return { ...unanswered('script', `--fail: ${step.name}.`), status }
  }
  if (step !== undefined) await delay(step.delayMs, undefined, { signal: whenGone(response) }).catch(() => {})
  if (response.destroyed) return unanswered('listen', GONE)
  if (passage !== undefined) return passOn(passage, arrived, response)
  return write(response, arrived.verification === 'mismatched' ? problem(refusalOf(arrived)) : accepted)
}

async function passOn(passage: Passage, arrived: Arrived, response: ServerResponse): Promise<Answered> {
  const { status, headers, body, error, reason } = await passage.pass(arrived, whenGone(response))
  if (response.destroyed) return unanswered('forward', GONE)
  if (status === undefined) return writeGatewayError(response, error === 'timeout' ? 504 : 502, reason)
  try {
    response.writeHead(status, headers as string[]).end(body)
  } catch (thrown) {
    return writeGatewayError(
      response,
      502,
      `The answer must be HTTP that Node sends. Got ${(thrown as Error).message}.`,
    )
  }
  return { status, headers, by: 'forward', body }
}

const GONE = 'The sender left before the answer.'

/** Fires when the sender ends the connection before it is answered. */
function whenGone(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.on('close', () => response.writableFinished || controller.abort())
  return controller.signal
}

function writeGatewayError(response: ServerResponse, status: number, detail = ''): Answered {
  const headers = { 'content-type': 'application/problem+json' }
  const written = write(response, { status, headers, body: JSON.stringify({ status, detail }) })
  return { ...written, by: 'forward', note: detail }
}

function write(response: ServerResponse, { status, headers, body }: TextAnswer): Answered {
  const sent = { ...headers, 'content-length': String(Buffer.byteLength(body)) }
  response.writeHead(status, sent).end(body)
  return { status, headers: Object.entries(sent).flat(), by: 'listen', body: Buffer.from(body) }
}

function unanswered(by: Answer['by'], note: string): Answered {
  return { headers: [], by, note }
}

function refusalOf({ headers }: Arrived): HooklineError {
  if (headerOf(headers, 'x-signature') !== undefined) return new HooklineError('signature_mismatch', MISMATCH)
  const text = 'The request must be signed. Got no X-Signature header. Sign the body with the shared secret.'
  return new HooklineError('signature_missing', text)
}

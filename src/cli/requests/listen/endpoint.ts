/** The endpoint of `hookline listen`: reads each request, answers it as a script, another endpoint or a correct receiver does, and keeps it. */

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { MISMATCH } from '../../../handling/lines.ts'
import { accepted, problem } from '../../../http/answer.ts'
import { bodyTooLarge } from '../../../http/body.ts'
import type { TextAnswer } from '../../../http/endpoint.ts'
import { readStream } from '../../../http/read-stream.ts'
import { HooklineError } from '../../../message/error.ts'
import { RESPONSE_LIMIT } from '../../../message/limits.ts'
import { verify } from '../../../message/signature.ts'
import { respond } from '../../../testing/respond.ts'
import { type Answer, BODY_LIMIT, headerOf, type KeptRequest, readFields } from '../kept.ts'
import type { Passage } from '../pass-on.ts'
import type { FailScript } from './fail-script.ts'
import type { Reasons } from './reasons.ts'

/** How requests are answered, and what gets them. Without a script and a passage: 401 for a wrong signature, and 200. */
export interface EndpointSettings {
  /** Without one, nothing is verified. */
  readonly verifier?: { readonly secret: string; readonly reasons: Reasons } | undefined
  readonly script?: FailScript | undefined
  readonly passage?: Passage | undefined
  /** Gets each request once it was answered, or is not to be. */
  keep(request: KeptRequest): void
}

/** A server that does not listen yet. */
export interface Endpoint {
  readonly server: Server
  /** Resolves when each request that came has been given to `keep`. */
  settled(): Promise<unknown>
}

/** Creates the endpoint. */
export function createEndpoint(settings: EndpointSettings): Endpoint {
  const { verifier, keep } = settings
  const pending = new Set<Promise<void>>()

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [receivedAt, started] = [Date.now(), performance.now()]
    response.on('error', () => {})
    const upload = await readUpload(request)
    const { body, size } = upload
    const { method = '', url: target = '', rawHeaders: headers } = request
    const signature = request.headers['x-signature']?.toString()
    const isComplete = upload.end === 'whole'
    const verification = isComplete && verifier ? verdictOf(verify(body, signature, verifier.secret)) : 'unchecked'
    const arrived = { ...upload, method, target, headers, verification } as const
    const { body: answerBody = Buffer.alloc(0), ...answered } = await answer(arrived, settings, response)
    const durationMs = performance.now() - started

    const id = randomUUID().slice(0, 13).replace('-', '')
    const reason = verification === 'mismatched' ? await verifier?.reasons.find(id, body, signature) : undefined
    const summary = { id, receivedAt, method, target, headers, size, isComplete, verification, reason }
    const message = isComplete ? readFields(body) : {}
    const kept = { ...summary, message, answer: { ...answered, durationMs } }
    keep({ ...kept, body, answerBody: answerBody.subarray(0, RESPONSE_LIMIT) })
  }

  function handle(request: IncomingMessage, response: ServerResponse): void {
    const received = receive(request, response).finally(() => pending.delete(received))
    pending.add(received)
  }

  const server = createServer({ requireHostHeader: false }, handle)
  server.on('checkContinue', (request, response) => {
    // One that waits before it sends too much is refused at once.
    if (!(Number(request.headers['content-length']) > BODY_LIMIT)) response.writeContinue()
    handle(request, response)
  })
  server.on('checkExpectation', handle)
  return { server, settled: () => Promise.all(pending) }
}

function verdictOf(isRight: boolean): KeptRequest['verification'] {
  return isRight ? 'verified' : 'mismatched'
}

/** A body as far as it came. */
interface Upload {
  /** At most the limit. */
  readonly body: Buffer
  /** How many bytes came. */
  readonly size: number
  readonly end: 'whole' | 'too_large' | 'aborted'
}

/** Reads a body, and keeps the beginning of one that is too large or ends early. Never rejects. */
async function readUpload(request: IncomingMessage): Promise<Upload> {
  const chunks: Buffer[] = []
  let size = 0
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= BODY_LIMIT) chunks.push(chunk)
  })
  // One that waits before it sends too much is refused at once. Of others the size is to be known.
  const { expect, 'content-length': length } = request.headers
  const end = await readStream(request, BODY_LIMIT, expect && length).then(
    () => 'whole' as const,
    ({ code }: HooklineError) => (code === 'body_too_large' ? 'too_large' : 'aborted'),
  )
  return { body: Buffer.concat(chunks), size, end }
}

/** The parts of a request that decide about its answer. */
type Arrived = Upload & Pick<KeptRequest, 'method' | 'target' | 'headers' | 'verification'>

/** What was answered, and the body of the answer. */
type Answered = Omit<Answer, 'durationMs'> & { readonly body?: Uint8Array }

/** Answers a request, or does not. Never rejects. */
async function answer(
  arrived: Arrived,
  { script, passage }: EndpointSettings,
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

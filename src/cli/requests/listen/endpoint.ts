/** The endpoint of `hookline listen`: a server that answers every request and keeps it. */

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { RESPONSE_LIMIT } from '../../../message/limits.ts'
import { verify } from '../../../message/signature.ts'
import { BODY_LIMIT, type KeptRequest } from '../kept.ts'
import { type AnswerSettings, answer } from './answers.ts'
import { readFields } from './message-fields.ts'
import type { Reasons } from './reasons.ts'
import { readUpload } from './uploads.ts'

/** How requests are answered, and what gets them. */
export interface EndpointSettings extends AnswerSettings {
  /** Without one, nothing is verified. */
  readonly verifier?: { readonly secret: string; readonly reasons: Reasons } | undefined
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

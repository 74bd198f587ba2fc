/**
 * Creates the endpoint of `hookline listen`, which answers and stores each request. Answers come from the script of `--fail`, from the
 * endpoint of `--forward`, or from rules like those of a receiver.
 */

import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { InvalidArgumentError } from 'commander'
import { createReceiver, type EndpointAnswer, type HooklineError, verify } from 'hookline'
import { readStream } from '../../../../../src/internals.ts'
import type { Forwarder } from '../forward.ts'
import { BODY_LIMIT, type KeptAnswer, type KeptRequest, readFields, SHOWN_DIGITS } from '../kept-request.ts'
import type { FindReason } from './reasons.ts'

/**
 * Determines how requests are answered and stored. With neither a script nor a forwarder, a request with a wrong signature gets a 401, and
 * any other request gets a 200.
 */
export interface EndpointSettings {
  readonly verifier?: { readonly secret: string; readonly findReason: FindReason } | undefined
  readonly script?: FailScript | undefined
  readonly forwarder?: Forwarder | undefined
  /** Stores a request that has been answered, or that certainly will not be answered. */
  keep(request: KeptRequest): void
}

export interface Endpoint {
  readonly server: Server
  /** Resolves when `keep` has been called for each request that arrived. */
  settled(): Promise<unknown>
}

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
    const isChecked = isComplete && verifier !== undefined
    const isRight = isChecked && verify(body, signature, verifier.secret)
    const verification = isChecked ? (isRight ? 'verified' : 'mismatched') : 'unchecked'
    const arrived = { ...upload, method, target, headers, verification, signature } as const
    const { body: answerBody = Buffer.alloc(0), ...answered } = await answerRequest(arrived, settings, response)
    const durationMs = performance.now() - started

    const id = randomUUID().slice(0, 13).replace('-', '')
    const summary = { id, receivedAt, method, target, headers, size, isComplete, verification } as const
    const message = isComplete ? readFields(body) : {}
    const bodies = { body, answerBody: answerBody.subarray(0, ANSWER_LIMIT) }
    const reason =
      verification === 'mismatched' ? verifier?.findReason(id.slice(0, SHOWN_DIGITS), body, signature) : undefined
    keep({ ...summary, message, reason, answer: { ...answered, durationMs }, ...bodies })
  }

  const server = createServer({ requireHostHeader: false }, (request, response) => {
    const received = receive(request, response).finally(() => pending.delete(received))
    pending.add(received)
  })
  return { server, settled: () => Promise.all(pending) }
}

/** The part of a body that arrived, cut at the limit. `size` counts all bytes that arrived. */
interface Upload {
  readonly body: Buffer
  readonly size: number
  readonly end: 'whole' | 'too_large' | 'aborted'
}

/** The maximum number of bytes to store of the body of an answer. */
const ANSWER_LIMIT = 64 * 1024

/** Reads a body. Returns only the beginning if the body is too large or ends early. Never rejects. */
async function readUpload(request: IncomingMessage): Promise<Upload> {
  const chunks: Buffer[] = []
  let size = 0
  request.on('data', (chunk: Buffer) => {
    size += chunk.length
    if (size <= BODY_LIMIT) chunks.push(chunk)
  })
  const end = await readStream(request, BODY_LIMIT, undefined).then(
    () => 'whole' as const,
    ({ code }: HooklineError) => (code === 'body_too_large' ? 'too_large' : 'aborted'),
  )
  return { body: Buffer.concat(chunks), size, end }
}

interface Arrived extends Upload, Pick<KeptRequest, 'method' | 'target' | 'headers' | 'verification'> {
  readonly signature: string | undefined
}

type Answered = Omit<KeptAnswer, 'durationMs'> & { readonly body?: Uint8Array }

const GONE = 'The sender disconnected before it got an answer.'

/** Answers a request, or leaves it without an answer. Never rejects. */
async function answerRequest(
  arrived: Arrived,
  { script, forwarder, verifier }: EndpointSettings,
  response: ServerResponse,
): Promise<Answered> {
  if (arrived.end === 'aborted') return unanswered('listen', 'The upload ended early.')
  if (arrived.end === 'too_large') return write(response, TOO_LARGE)
  const step = script?.()
  if (step !== undefined && step.delayMs === undefined) return fail(step.name, response)
  const gone = new AbortController()
  response.on('close', () => response.writableFinished || gone.abort())
  if (step !== undefined) await delay(step.delayMs, undefined, { signal: gone.signal }).catch(() => {})
  if (response.destroyed) return unanswered('listen', GONE)
  if (forwarder !== undefined) return forward(forwarder, arrived, response, gone.signal)
  const isRefused = verifier !== undefined && arrived.verification === 'mismatched'
  return write(response, isRefused ? await refuse(arrived, verifier.secret) : ACCEPTED)
}

const ACCEPTED: EndpointAnswer = {
  status: 200,
  headers: { 'content-type': 'application/json' },
  body: '{"ok":true}',
}
const TOO_LARGE = problem(413, `The body must have at most ${BODY_LIMIT} bytes.`, {
  connection: 'close',
})

/** Returns the answer that a receiver gives to a wrong signature. */
async function refuse({ body, signature }: Arrived, secret: string): Promise<EndpointAnswer> {
  const receiver = createReceiver({ secret: () => secret, limit: BODY_LIMIT, onError() {} })
  return receiver.receive(body, { 'content-type': 'application/json', 'x-signature': signature })
}

function problem(status: number, detail: string, more: EndpointAnswer['headers'] = {}): EndpointAnswer {
  const headers = { 'content-type': 'application/problem+json', ...more }
  return { status, headers, body: JSON.stringify({ status, detail }) }
}

/** Runs a step of `--fail` that has no delay. For `timeout`, does nothing, so that the sender times out. */
function fail(name: string, response: ServerResponse): Answered {
  const failed = unanswered('script', `--fail: ${name}.`)
  if (name === 'reset') response.socket?.resetAndDestroy()
  else if (name === 'close') response.socket?.destroy()
  else if (name !== 'timeout') response.writeHead(Number(name)).end()
  return /^\d/.test(name) ? { ...failed, status: Number(name) } : failed
}

async function forward(
  forwarder: Forwarder,
  arrived: Arrived,
  response: ServerResponse,
  gone: AbortSignal,
): Promise<Answered> {
  const { status, headers, body, error, reason } = await forwarder.forward(arrived, gone)
  if (response.destroyed) return unanswered('forward', GONE)
  if (status === undefined) return writeGatewayError(response, error === 'timeout' ? 504 : 502, reason)
  try {
    response.writeHead(status, headers as string[]).end(body)
  } catch (thrown) {
    const detail = `The endpoint of --forward must answer with valid HTTP: ${(thrown as Error).message}.`
    return writeGatewayError(response, 502, detail)
  }
  return { status, headers, by: 'forward', body }
}

function writeGatewayError(response: ServerResponse, status: number, detail = ''): Answered {
  return { ...write(response, problem(status, detail)), by: 'forward', note: detail }
}

function write(response: ServerResponse, { status, headers, body }: EndpointAnswer): Answered {
  const sent = { ...headers, 'content-length': String(Buffer.byteLength(body)) }
  response.writeHead(status, sent).end(body)
  return { status, headers: Object.entries(sent).flat(), by: 'listen', body: Buffer.from(body) }
}

function unanswered(by: KeptAnswer['by'], note: string): Answered {
  return { headers: [], by, note }
}

/** The effect of `--fail` on one request. With a delay, the request gets its normal answer late. */
interface FailStep {
  readonly name: string
  readonly delayMs?: number
}

/** Returns the step of `--fail` for the next request; undefined when there are no more steps. */
export type FailScript = () => FailStep | undefined

/** Parses `--fail`. Throws an InvalidArgumentError that shows valid steps. */
export function failScript(text: string): FailScript {
  const steps = text.split(',').flatMap(readSteps)
  return () => steps.shift()
}

function readSteps(text: string): readonly FailStep[] {
  const pattern = /^\s*(?:([1-9]\d{0,3})\s*x\s*)?(timeout|reset|close|slow:(\d{1,6})|[2-5]\d\d)\s*$/
  const [, count = '1', name, ms] = pattern.exec(text.toLowerCase()) ?? []
  if (name === undefined) {
    throw new InvalidArgumentError(
      `Unknown step '${text.slice(0, 40)}'. A step is a status from 200 to 599, timeout, reset, close or slow:MILLISECONDS. A step may begin with a count from 1 to 9999. Pass, for example, 3x500,1xtimeout,2xreset,1xslow:3000.`,
    )
  }
  return Array(Number(count)).fill({ name, ...(ms !== undefined && { delayMs: Number(ms) }) })
}

/**
 * Serves an endpoint from AWS Lambda, behind API Gateway, a function URL or an Application Load Balancer.
 *
 * @module hookline/lambda
 */

import { withoutConnection } from '../src/host/answer.ts'
import { bodyConsumed, bodyTooLarge, type EndpointBody } from '../src/host/body.ts'
import type { Endpoint, EndpointAnswer, EndpointHeaders, EndpointRequest } from '../src/host/endpoint.ts'
import { invalidOption, kindOf } from '../src/kit/checks.ts'
import { refuseOtherHost } from './shared/host.ts'
import { type Handle, mount, type ServeOptions } from './shared/mount.ts'

export type { ServeOptions } from './shared/mount.ts'

/**
 * The part of an HTTP event that the handler uses. The event may come from a REST API, an HTTP API (format 1.0 or 2.0), a function URL or
 * an Application Load Balancer.
 */
export interface LambdaEvent {
  readonly requestContext?: {
    readonly http?: { readonly method: string; readonly sourceIp?: string }
    readonly identity?: { readonly sourceIp?: string }
    readonly elb?: object
  }
  readonly httpMethod?: string
  readonly path?: string
  readonly rawPath?: string
  readonly rawQueryString?: string
  readonly queryStringParameters?: { readonly [name: string]: string | undefined } | null | undefined
  readonly multiValueQueryStringParameters?: LambdaEvent['multiValueHeaders']
  readonly headers?: { readonly [name: string]: string | undefined } | null | undefined
  readonly multiValueHeaders?: { readonly [name: string]: readonly string[] | undefined } | null | undefined
  readonly body?: string | null | undefined
  readonly isBase64Encoded?: boolean
}

/** The part of a Lambda context that the handler uses. */
export interface LambdaContext {
  getRemainingTimeInMillis?(): number
}

/** The answer that the handler returns to Lambda. */
export interface LambdaAnswer {
  readonly statusCode: number
  readonly headers?: Readonly<Record<string, string>>
  /** Replaces `headers` for a load balancer whose target group uses multi-value headers. */
  readonly multiValueHeaders?: Readonly<Record<string, string[]>>
  readonly body: string
  readonly isBase64Encoded: boolean
}

/**
 * Returns a Lambda handler. The handler answers a request for another path with 404, and rejects with a TypeError for an event that is not
 * an HTTP request. The endpoint gets the path of the event: an HTTP API with a stage other than `$default` puts the name of the stage
 * before the path.
 *
 * @throws TypeError for an endpoint that continues to work after its answer, because Lambda stops the process then. If such work starts
 *   later, the handler rejects.
 * @example
 * export const handler = serve(receiver)
 */
export function serve(
  endpoint: Endpoint,
  options?: ServeOptions,
): (event: LambdaEvent, context?: LambdaContext) => Promise<LambdaAnswer> {
  const handle = mount(endpoint, options)
  refuseBackgroundWork(endpoint)

  return function hookline(event, context, ...others: unknown[]) {
    refuseOtherHost('hookline/lambda', 'a Lambda event', event, context, ...others)
    return respond(endpoint, handle, event, context)
  }
}

async function respond(endpoint: Endpoint, handle: Handle, event: LambdaEvent, context: LambdaContext | undefined) {
  refuseBackgroundWork(endpoint) // Such work may have started since `serve` was called.
  const request = new LambdaRequest(event, context)
  const answer = (await handle(request)) ?? NOT_FOUND
  const body = request.method === 'HEAD' ? '' : answer.body
  return { ...toHead(answer, event), body, isBase64Encoded: false }
}

const NOT_FOUND: EndpointAnswer = { status: 404, headers: {}, body: '' }

/** The time to reserve for sending the answer before Lambda ends the function, in milliseconds. */
const ANSWER_MS = 200

/** @throws TypeError for an endpoint that continues to work after its answer, because Lambda stops the process then. */
function refuseBackgroundWork({ background }: Endpoint): void {
  if (background === undefined) return
  const advice =
    'Store messages in Redis or PostgreSQL. Handle them with `receiver.work()` in a scheduled function, not with `start()` here, or handle and deliver them in a process that keeps running.'
  const rule = `must finish its work before it answers on Lambda. This endpoint has ${background}`
  throw invalidOption('serve: endpoint', rule, undefined, advice)
}

class LambdaRequest implements EndpointRequest {
  readonly method: string
  path: string
  readonly query: string
  readonly headers: EndpointHeaders
  readonly remoteAddress: string | undefined
  readonly remainingMs: number | undefined
  readonly #event: LambdaEvent

  constructor(event: LambdaEvent, context: LambdaContext | undefined) {
    const { http, identity } = event?.requestContext ?? {}
    const [method, path] = http === undefined ? [event?.httpMethod, event?.path] : [http.method, event.rawPath]
    if (typeof method !== 'string' || typeof path !== 'string') throw notHttp(event)
    this.method = method
    this.path = path
    this.query = event.rawQueryString ?? queryOf(event)
    this.headers = headersOf(event)
    this.remoteAddress = http?.sourceIp ?? identity?.sourceIp
    const leftMs = context?.getRemainingTimeInMillis?.()
    this.remainingMs = leftMs && Math.max(0, leftMs - ANSWER_MS)
    this.#event = event
  }

  readBody(limit: number): EndpointBody {
    const { body, isBase64Encoded = false } = this.#event
    if (body === undefined || body === null) return { bytes: new Uint8Array(), source: 'body' }
    if (typeof body !== 'string') throw bodyConsumed(kindOf(body), AS_IT_IS)
    const encoding = isBase64Encoded ? 'base64' : 'utf8'
    if (Buffer.byteLength(body, encoding) > limit) throw bodyTooLarge(limit)
    const bytes = Buffer.from(body, encoding)
    if (isBase64Encoded && bytes.toString('base64') !== body) throw bodyConsumed('text that is not base64', AS_IT_IS)
    const isExact = isBase64Encoded || isComplete(bytes, this.headers['content-length'])
    return { bytes, source: isExact ? 'body' : 'body-text' }
  }
}

const AS_IT_IS = 'Pass on the event exactly as Lambda provides it, with `isBase64Encoded`.'

function notHttp(event: unknown): TypeError {
  const advice = 'Call the function through API Gateway, a function URL or an Application Load Balancer.'
  return invalidOption('event', 'must be an HTTP event with a method and a path', kindOf(event), advice)
}

/**
 * Returns whether the bytes are exactly those that the client sent. Bytes are missing or replaced if their number
 * differs from `content-length`, or if they contain U+FFFD, which replaces bytes that are not UTF-8.
 */
function isComplete(bytes: Buffer, length: EndpointHeaders[string]): boolean {
  return (length === undefined || Number(length) === bytes.length) && !bytes.includes('\ufffd')
}

/** Returns the headers of an event. Joins the values of a repeated header, as HTTP APIs and function URLs do themselves. */
function headersOf({ headers, multiValueHeaders }: LambdaEvent): EndpointHeaders {
  const joined = new Map<string, string>()
  for (const [name, value] of pairsOf(multiValueHeaders ?? headers)) {
    const key = name.toLowerCase()
    joined.set(key, joined.has(key) ? `${joined.get(key)}, ${value}` : value)
  }
  return Object.fromEntries(joined)
}

/**
 * Joins the query parameters of an event in format 1.0. API Gateway decodes the parameters, so they are encoded again. A
 * load balancer does not decode them.
 */
function queryOf({ requestContext, queryStringParameters, multiValueQueryStringParameters }: LambdaEvent): string {
  const pairs = pairsOf(multiValueQueryStringParameters ?? queryStringParameters)
  if (requestContext?.elb === undefined) return new URLSearchParams(pairs).toString()
  return pairs.map((pair) => pair.join('=')).join('&')
}

function pairsOf(values: LambdaEvent['headers' | 'multiValueHeaders']): [name: string, value: string][] {
  return Object.entries(values ?? {}).flatMap(([name, value = []]) =>
    [value].flat().map((each): [string, string] => [name, each]),
  )
}

/** Writes the status and the headers in the form that the sender of the event expects: API Gateway, a function URL or a load balancer. */
function toHead(answer: EndpointAnswer, { requestContext, multiValueHeaders }: LambdaEvent) {
  const headers = withoutConnection(answer)
  if (requestContext?.elb === undefined || !multiValueHeaders) return { statusCode: answer.status, headers }
  const lists = Object.entries(headers).map(([name, value]): [string, string[]] => [name, [value]])
  return { statusCode: answer.status, multiValueHeaders: Object.fromEntries(lists) }
}

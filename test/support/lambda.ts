/** Events of AWS Lambda in the shapes that AWS documents, and a client that sends what a gateway would make of a request. */

import { Readable } from 'node:stream'
import type { LambdaAnswer, LambdaContext, LambdaEvent } from '../../adapters/lambda.ts'
import { type Client, clientOf, headersOf, type Wire } from './wire.ts'

/** A request, as it reaches the gateway; its path is without the query. */
interface GatewayRequest {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: Uint8Array
}

/** What a gateway makes of a request. The body is base64, or text where the gateway knows the content type as text. */
type ToEvent = (request: GatewayRequest, isBase64Encoded: boolean) => LambdaEvent

/** The gateways, by what the documentation of AWS calls them. */
export const GATEWAYS = {
  'REST API': restEvent,
  'HTTP API': httpEvent, // That of a function URL is the same.
  'load balancer': loadBalancerEvent,
  'load balancer, multi-value headers': multiValueEvent,
} as const satisfies Readonly<Record<string, ToEvent>>

/** https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html */
function restEvent(request: GatewayRequest, isBase64Encoded: boolean) {
  const { method, path } = request
  // A REST API passes the names as the client wrote them, and no content-length.
  const headers = request.headers
    .filter(([name]) => name !== 'content-length')
    .map(([name, value]): [string, string] => [name.replace(/\b[a-z]/g, (first) => first.toUpperCase()), value])
  const query = [...new URLSearchParams(request.query)]
  return {
    resource: path,
    path,
    httpMethod: method,
    headers: Object.fromEntries(headers),
    multiValueHeaders: listed(headers),
    queryStringParameters: query.length === 0 ? null : Object.fromEntries(query),
    multiValueQueryStringParameters: query.length === 0 ? null : listed(query),
    requestContext: { resourceId: '2gxmpl', httpMethod: method, identity: { sourceIp: '203.0.113.7' } },
    ...bodyOf(request, isBase64Encoded, null),
  }
}

/** https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html */
function httpEvent(request: GatewayRequest, isBase64Encoded: boolean) {
  const { method, path, query } = request
  const parameters = joined([...new URLSearchParams(query)], ',')
  return {
    version: '2.0',
    routeKey: '$default',
    rawPath: path,
    rawQueryString: query,
    headers: joined(request.headers, ','),
    ...(query !== '' && { queryStringParameters: parameters }),
    requestContext: { http: { method, path, protocol: 'HTTP/1.1', sourceIp: '203.0.113.7', userAgent: 'sender/1.0' } },
    ...bodyOf(request, isBase64Encoded, undefined),
  }
}

/** https://docs.aws.amazon.com/elasticloadbalancing/latest/application/lambda-functions.html */
function loadBalancerEvent(request: GatewayRequest, isBase64Encoded: boolean) {
  return {
    requestContext: { elb: { targetGroupArn: 'arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/x/1' } },
    httpMethod: request.method,
    path: request.path,
    queryStringParameters: Object.fromEntries(rawPairs(request.query)),
    headers: Object.fromEntries([...request.headers, ...FORWARDED]),
    ...bodyOf(request, isBase64Encoded, ''),
  }
}

function multiValueEvent(request: GatewayRequest, isBase64Encoded: boolean) {
  const { headers: _, queryStringParameters: __, ...event } = loadBalancerEvent(request, isBase64Encoded)
  return {
    ...event,
    multiValueQueryStringParameters: listed(rawPairs(request.query)),
    multiValueHeaders: listed([...request.headers, ...FORWARDED]),
  }
}

const FORWARDED = [['x-forwarded-for', '203.0.113.7']] as const

function bodyOf({ body }: GatewayRequest, isBase64Encoded: boolean, none: '' | null | undefined) {
  if (body.length === 0) return { body: none, isBase64Encoded: false }
  const bytes = Buffer.from(body)
  return { body: bytes.toString(isBase64Encoded ? 'base64' : 'utf8'), isBase64Encoded }
}

/** A load balancer does not decode the query. */
function rawPairs(query: string): [string, string][] {
  if (query === '') return []
  return query.split('&').map((pair) => {
    const [name = '', ...value] = pair.split('=')
    return [name, value.join('=')]
  })
}

function listed(pairs: readonly (readonly [string, string])[]): Record<string, string[]> {
  const groups = Object.entries(Object.groupBy(pairs, ([name]) => name))
  return Object.fromEntries(groups.map(([name, group = []]) => [name, group.map(([, value]) => value)]))
}

function joined(pairs: readonly (readonly [string, string])[], separator: string): Record<string, string> {
  return Object.fromEntries(Object.entries(listed(pairs)).map(([name, values]) => [name, values.join(separator)]))
}

type Handler = (event: LambdaEvent, context: LambdaContext) => Promise<LambdaAnswer>

/** Sends whole requests to a handler, as events of a gateway. */
export function clientOfLambda(handler: Handler, toEvent: ToEvent, isBase64Encoded: boolean): Client {
  return clientOf(async (wire) => {
    const event = toEvent(requestOf(wire), isBase64Encoded)
    const answer = await handler(JSON.parse(JSON.stringify(event)), { getRemainingTimeInMillis: () => 30_000 })
    const { statusCode, headers = {}, multiValueHeaders, body } = answer
    const lists = Object.entries(multiValueHeaders ?? {}).map(([name, values]) => [name, values.join(', ')])
    return {
      status: statusCode,
      headers: multiValueHeaders === undefined ? headers : Object.fromEntries(lists),
      body: Readable.from([Buffer.from(body)]),
    }
  })
}

export function requestOf(wire: Wire): GatewayRequest {
  const [path = '', ...query] = (wire.path ?? '/webhooks').split('?')
  const headers = Object.entries(headersOf(wire)).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  )
  return { method: wire.method ?? 'POST', path, query: query.join('?'), headers, body: Buffer.concat(wire.chunks) }
}

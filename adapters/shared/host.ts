/** Recognises the host that called a handler by the shape of the arguments, so that an error can name the import that this host needs. */

import { kindOf } from '../../src/kit/checks.ts'

type Subpath = `hookline/${'express' | 'fastify' | 'fetch' | 'koa' | 'lambda' | 'node'}`

/** Returns an object or a function unchanged. Wraps any other value in an object, so that its properties can be read without an error. */
function shapeOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value)
}

function isNode(request: unknown, response: unknown): boolean {
  const { writeHead, end } = shapeOf(response)
  return typeof shapeOf(request).headers === 'object' && typeof writeHead === 'function' && typeof end === 'function'
}

function isWebRequest(value: unknown): boolean {
  const { url, headers } = shapeOf(value)
  return typeof url === 'string' && typeof shapeOf(headers).get === 'function'
}

function isKoa(context: unknown): boolean {
  const { req, res } = shapeOf(context)
  return isNode(req, res)
}

function isScope(instance: unknown): boolean {
  return typeof shapeOf(instance).register === 'function'
}

/**
 * The hosts that may call a handler. The first host whose function `fits` returns true is the one that called. `advice` says what to do in
 * addition to importing from the subpath.
 */
const HOSTS: readonly (readonly [
  found: string,
  subpath: Subpath,
  advice: string,
  fits: (first: unknown, second: unknown, third: unknown) => boolean,
])[] = [
  ['a web Request', 'hookline/fetch', '', isWebRequest],
  [
    'a context with a web Request',
    'hookline/fetch',
    ', and call what it returns with that Request',
    (first) => isWebRequest(shapeOf(first).request) || isWebRequest(shapeOf(shapeOf(first).req).raw),
  ],
  ['a Koa context', 'hookline/koa', '', isKoa],
  ['a Fastify instance', 'hookline/fastify', '', isScope],
  [
    'a Fastify request',
    'hookline/fastify',
    ', and pass what it returns to app.register',
    (first, second) => isNode(shapeOf(first).raw, shapeOf(second).raw),
  ],
  ['a Lambda event', 'hookline/lambda', '', (first) => 'requestContext' in shapeOf(first)],
  [
    'an Express request',
    'hookline/express',
    '',
    (first, second, third) => isNode(first, second) && typeof third === 'function',
  ],
  ['a request of node:http', 'hookline/node', '', isNode],
]

/** Throws a TypeError if the arguments are those of another host. */
export function refuseOtherHost(subpath: Subpath, needed: string, ...args: readonly unknown[]): void {
  const [first, second, third] = args
  const host = HOSTS.find(([, , , fits]) => fits(first, second, third))
  if (host === undefined) return
  const [found, right, advice] = host
  if (right === subpath && advice === '') return
  throw wrongCaller(subpath, needed, found, `Import \`serve\` from '${right}'${advice}.`)
}

/** Throws a TypeError. If another host called the handler, the error names the import for that host. */
function refuse(subpath: Subpath, needed: string, ...args: readonly unknown[]): never {
  refuseOtherHost(subpath, needed, ...args)
  const advice =
    'Mount the function that `serve` returns. In a test, call it with the arguments that the framework passes.'
  throw wrongCaller(subpath, needed, args.map(kindOf).join(', ') || 'no arguments', advice)
}

function wrongCaller(subpath: Subpath, needed: string, found: string, advice: string): TypeError {
  const handler = `The function that \`serve\` from '${subpath}' returned`
  return new TypeError(`${handler} must be called with ${needed}. Got ${found}. ${advice}`)
}

export function requireNode(subpath: Subpath, ...args: readonly unknown[]): void {
  if (!isNode(args[0], args[1])) refuse(subpath, 'a Node request and response', ...args)
}

export function requireKoa(...args: readonly unknown[]): void {
  if (!isKoa(args[0])) refuse('hookline/koa', 'a Koa context', ...args)
}

export function requireScope(...args: readonly unknown[]): void {
  if (!isScope(args[0])) refuse('hookline/fastify', 'a Fastify instance', ...args)
}

export function requireWebRequest(...args: readonly unknown[]): void {
  if (!isWebRequest(args[0])) refuse('hookline/fetch', 'a web Request', ...args)
}

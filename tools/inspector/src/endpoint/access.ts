/** Decides who may see the inspector, and who may make changes with it. Everything is refused unless a token or `authorize` permits it. */

import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { Clock, EndpointHeaders } from 'hookline'
import { type createLog, inBackground, kindOf, TIMED_OUT, withTimeout } from '../../../../src/internals.ts'
import type { AccessRequest, Authorize } from '../api.ts'
import type { Access } from '../wire.ts'
import { Refusal, refuseUnless } from './answers.ts'

/** The header that contains the token. With `authorize`, the header may have any value. */
const OWN_HEADER = 'x-hookline-inspector'

export interface GuardOptions {
  readonly authorize?: Authorize | undefined
  readonly token?: string | undefined
  readonly log: Pick<ReturnType<typeof createLog>, 'write'>
  /** The system clock, because the clock of the parts may stand still. */
  readonly machine: Clock
}

/** The timeout of `authorize`, in milliseconds. */
const ANSWER_MS = 10_000

/** Creates the guard of an inspector. The guard uses `authorize`, or a token, which is random by default. */
export function createGuard({ authorize, token = randomBytes(32).toString('base64url'), log, machine }: GuardOptions) {
  const clock = inBackground(machine)
  const expected = Buffer.from(token)

  function checkToken(request: AccessRequest): Access {
    requireLocal(request)
    if (!request.path.startsWith('/api/')) return 'read' // The files of the page need no token, because they contain no data.
    const given = Buffer.from(String(request.headers[OWN_HEADER]))
    const isToken = given.length === expected.length && timingSafeEqual(given, expected)
    const rule = "The request must have the token from the inspector's URL. It has no token, or an old one"
    const advice = 'Open the complete URL that the app printed when it started, or pass `authorize` to createInspector.'
    refuseUnless(isToken, 403, `${rule}. ${advice}`)
    return 'write'
  }

  function report(text: string, thrown?: unknown): false {
    log.write({ level: 'error', code: 'authorize_failed', text: `${text} The request was refused.`, thrown })
    return false
  }

  async function ask(authorize: Authorize, request: AccessRequest): Promise<Access | false> {
    try {
      const access: unknown = await withTimeout(Promise.resolve(authorize(request)), ANSWER_MS, clock)
      if (access === 'read' || access === 'write' || access === false) return access
      if (access === TIMED_OUT) return report('`authorize` did not respond within 10 seconds.')
      return report(`\`authorize\` must return false, 'read' or 'write'. Got ${kindOf(access)}.`)
    } catch (thrown) {
      return report('`authorize` failed.', thrown)
    }
  }

  return {
    /** Whether `check` must be repeated for a request that stays open. */
    isAskedAgain: authorize !== undefined,
    /**
     * Returns what the sender of a request may do.
     *
     * @throws Refusal (as a rejection) when the sender may do nothing.
     */
    async check({ method, path, headers, remoteAddress }: AccessRequest): Promise<Access> {
      const request = { method, path, headers, remoteAddress }
      if (authorize === undefined) return checkToken(request)
      const access = await ask(authorize, request)
      const text = "`authorize` of createInspector refused this request. To allow it, return 'read' or 'write'."
      refuseUnless(access !== false, 403, text)
      return access
    },
    /** Adds the token to a URL as a fragment, because browsers never send a fragment. A cookie would be sent to every port of the host. */
    url(mount: string): string {
      if (authorize === undefined) return `${mount.replace(/\/$/, '')}/#token=${token}`
      throw new TypeError(
        '`url` needs an inspector with a token. An inspector with `authorize` has no token: print the URL without a token.',
      )
    },
  }
}

const INSTEAD = 'Pass `authorize` to createInspector to decide who may see the inspector.'

/**
 * Accepts only a request from this machine that came through no proxy. Checks the connection, the proxy headers, and the Host header,
 * because the host name of another site can resolve to this machine.
 *
 * @throws Refusal that says what to do.
 */
function requireLocal({ remoteAddress, headers }: AccessRequest): void {
  if (remoteAddress === undefined) throw closed('came over a connection whose address is not known')
  if (!LOOPBACK_ADDRESS.test(remoteAddress)) throw closed('came from another machine')
  const proxy = Object.keys(headers).find((name) => PROXY_HEADER.test(name) && headers[name] !== undefined)
  if (proxy !== undefined) throw closed(`has the header ${titleCase(proxy)}, so it came through a proxy`)
  if (!LOOPBACK_HOST.test(hostOf(headers) ?? '')) throw closed('has a Host header that does not name this machine')
}

function closed(found: string): Refusal {
  return new Refusal(403, `The inspector only answers requests from this machine. This request ${found}. ${INSTEAD}`)
}

const LOOPBACK_ADDRESS = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/i
const LOOPBACK_HOST = /^(?:(?:[a-z\d_-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i
const PROXY_HEADER =
  /^(?:via|cdn-loop|cf-ray|x[-_](?:original|envoy)(?:[-_].*)?|(?:.*[-_])?forwarded(?:[-_].*)?|.*(?:client|connecting|real|user|socket)[-_]?ip)$/

/** Returns the host that a request names, over HTTP/1.1 or HTTP/2; undefined when it is missing or ambiguous. */
function hostOf(headers: EndpointHeaders): string | undefined {
  const { host, ':authority': authority = host } = headers
  return typeof authority === 'string' && (host ?? authority) === authority ? authority : undefined
}

function titleCase(name: string): string {
  return name.replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()).slice(0, 40)
}

/**
 * Accepts only a request that the page sent, that a user made in the address bar, or that did not come from a browser.
 *
 * @throws Refusal for a request from another site.
 */
export function requireSameOrigin(headers: EndpointHeaders, method: string): void {
  const { origin, 'sec-fetch-site': site } = headers
  const isTyped = site === 'none' && method !== 'POST'
  if (site !== undefined && site !== 'same-origin' && !isTyped)
    throw foreign('has a Sec-Fetch-Site header that names another site')
  if (origin === undefined) return
  const [from, host] = [typeof origin === 'string' ? URL.parse(origin) : null, hostOf(headers)]
  const isWeb = from?.protocol === 'http:' || from?.protocol === 'https:'
  if (!isWeb || host === undefined || from.host !== URL.parse(`${from.protocol}//${host}`)?.host) {
    throw foreign('has an Origin header that names another site')
  }
}

function foreign(found: string): Refusal {
  return new Refusal(
    403,
    `The inspector only answers requests from its own page. This request ${found}. Open the page at the URL of the app.`,
  )
}

/**
 * Accepts a POST only with the header `X-Hookline-Inspector`, because a form on another site cannot set this header.
 *
 * @throws Refusal if the header is missing.
 */
export function requireOwnHeader(headers: EndpointHeaders): void {
  const text = 'A POST must have the header X-Hookline-Inspector: 1. Add the header.'
  refuseUnless(headers[OWN_HEADER] !== undefined, 403, text)
}

/** Where a request comes from: whether it is of this machine, and of the page itself. */

import type { EndpointHeaders } from '../../http/endpoint.ts'
import type { AccessRequest } from '../api.ts'
import { Refusal } from './answers.ts'

const INSTEAD = 'Pass `authorize` to createInspector to decide who may see it.'

/**
 * Lets a request of this machine pass that came over no proxy: by its connection, its Host, because a page of another site can
 * have a name that leads here, and its headers. Returns the port of its Host.
 *
 * @throws Refusal that says what to do.
 */
export function requireLocal({ remoteAddress, headers }: AccessRequest): string {
  if (remoteAddress === undefined) {
    throw closed('an address that this host does not know')
  }
  if (!LOOPBACK_ADDRESS.test(remoteAddress)) throw closed('a connection of another machine')
  const proxy = Object.keys(headers).find((name) => PROXY_HEADER.test(name) && headers[name] !== undefined)
  if (proxy !== undefined) throw closed(`a request with ${titleCase(proxy)}, so it came through a proxy`)
  const host = LOOPBACK_HOST.exec(hostOf(headers) ?? '')
  if (host === null) throw closed('a Host that is not of this machine')
  return host[1] ?? '80'
}

function closed(found: string): Refusal {
  return new Refusal(403, `The inspector is served to this machine only. Got ${found}. ${INSTEAD}`)
}

const LOOPBACK_ADDRESS = /^(?:127(?:\.\d{1,3}){3}|::1|::ffff:127(?:\.\d{1,3}){3})$/i
const LOOPBACK_HOST = /^(?:(?:[a-z\d_-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::(\d{1,5}))?$/i
const PROXY_HEADER = /^(?:forwarded|x-forwarded(?:-.*)?|x-real-ip|via)$/

/** The Host of a request, also of HTTP/2; undefined when it is missing, or given twice and not the same. */
function hostOf(headers: EndpointHeaders): string | undefined {
  const { host, ':authority': authority = host } = headers
  return typeof authority === 'string' && (host ?? authority) === authority ? authority : undefined
}

/** `X-Forwarded-For` */
function titleCase(name: string): string {
  return name.replace(/(?<=^|-)[a-z]/g, (letter) => letter.toUpperCase()).slice(0, 40)
}

/**
 * Lets a request pass that a browser sent for the page itself, and one of no browser.
 *
 * @throws Refusal for one of another site.
 */
export function requireSameOrigin(headers: EndpointHeaders, method: string): void {
  const { origin, 'sec-fetch-site': site } = headers
  const isTyped = site === 'none' && method !== 'POST'
  if (site !== undefined && site !== 'same-origin' && !isTyped) throw foreign('a Sec-Fetch-Site of another site')
  if (origin === undefined) return
  const [from, host] = [typeof origin === 'string' ? URL.parse(origin) : null, hostOf(headers)]
  if (from === null || host === undefined || from.host !== URL.parse(`${from.protocol}//${host}`)?.host) {
    throw foreign('an Origin of another site')
  }
}

function foreign(found: string): Refusal {
  return new Refusal(403, `The inspector answers its own page only. Got ${found}. Open the page at the URL of the app.`)
}

/**
 * Lets a POST pass that only the page, or a program, can have sent: a form of another site sets no such header.
 *
 * @throws Refusal
 */
export function requireOwnHeader(headers: EndpointHeaders): void {
  if (headers['x-hookline-inspector'] === '1') return
  throw new Refusal(
    403,
    'A POST must have the header X-Hookline-Inspector: 1. Got none, or another value. Add the header.',
  )
}

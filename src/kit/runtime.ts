/** Checks the runtime that sending needs. This is a separate file of the package, because the check must run before undici is loaded. */

import { isWorkerd } from './workerd.ts'

/** The minimum version of Node.js, from `engines` of the package. undici fails to load on an older one. */
const MIN_NODE = '22.19'

/**
 * Requires a Node.js version that undici supports. Bun and workerd are not checked, because they report a Node.js version that they
 * imitate.
 *
 * @throws Error on an older Node.js.
 */
export function requireNode({ node, bun }: NodeJS.ProcessVersions = process.versions): void {
  if (bun || isWorkerd() || node.localeCompare(MIN_NODE, 'en', { numeric: true }) >= 0) return
  throw new Error(`Sending needs Node ${MIN_NODE} or newer. Got ${node}. Install a newer Node version.`)
}

requireNode()

/**
 * Requires a runtime whose sockets expose the certificate of a server.
 *
 * @throws TypeError on workerd, whose sockets do not expose it.
 */
export function requireCertificates(): void {
  if (!isWorkerd()) return
  const advice = 'Send from Node, Bun or Deno, or pass a `dispatcher`.'
  throw new TypeError(
    `Sending needs a runtime that exposes the certificate of a server. Got workerd (Cloudflare Workers). ${advice}`,
  )
}

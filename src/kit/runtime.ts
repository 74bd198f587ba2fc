/** Checks the runtime that sending needs. This is a file of its own in the package, because it must run before undici is loaded. */

import { isWorkerd } from './workerd.ts'

/** The version in `engines` of the package. On an older Node, undici fails to load. */
const MIN_NODE = '22.19'

/**
 * @throws Error on an older Node. Bun and workerd are not checked: they report a Node version that they resemble.
 */
export function requireNode({ node, bun }: NodeJS.ProcessVersions = process.versions): void {
  if (bun || isWorkerd() || node.localeCompare(MIN_NODE, 'en', { numeric: true }) >= 0) return
  throw new Error(`Sending needs Node ${MIN_NODE} or newer. Got ${node}. Install a newer Node version.`)
}

requireNode()

/**
 * @throws TypeError on workerd, whose sockets do not expose the certificate of a server.
 */
export function requireCertificates(): void {
  if (!isWorkerd()) return
  const advice = 'Send from Node, Bun or Deno, or pass a `dispatcher`.'
  throw new TypeError(
    `Sending needs a runtime that exposes the certificate of a server. Got workerd (Cloudflare Workers). ${advice}`,
  )
}

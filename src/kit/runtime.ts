/** Checks the runtime that sending needs. It is a file of its own in the package, because it has to run before undici is loaded. */

import { isWorkerd } from './workerd.ts'

/** The version that `engines` of the package names. On an older Node, undici fails while it is loaded. */
const MIN_NODE = '22.19'

/** @throws Error on an older Node. Bun and workerd are not checked: they name a Node that they resemble. */
export function requireNode({ node, bun }: NodeJS.ProcessVersions = process.versions): void {
  if (bun || isWorkerd() || node.localeCompare(MIN_NODE, 'en', { numeric: true }) >= 0) return
  throw new Error(`Sending needs Node ${MIN_NODE} or newer, and this is ${node}. Install a newer Node.`)
}

requireNode()

/** @throws TypeError on workerd, whose sockets do not show the certificate of a server. */
export function requireCertificates(): void {
  if (!isWorkerd()) return
  const advice = 'Send from Node, Bun or Deno, or pass a `dispatcher`.'
  throw new TypeError(
    `Sending needs a runtime that shows the certificate of a server. Got workerd (Cloudflare Workers). ${advice}`,
  )
}

/** A collector and a destination for integration tests, with real sockets, and with a clock that a test moves. */

import type { Platform, PlatformOptions } from './platform-types.ts'

/**
 * Starts a collector on a port of 127.0.0.1, with one source and one destination. The destination delivers to your
 * endpoint with the schedule, the signatures and the rules of the real platform. Time stands still until you move it.
 *
 * @throws TypeError (as a rejection) that names the invalid option.
 * @throws Error (as a rejection) with the code `EADDRINUSE` when the port is already in use.
 * @example
 * const platform = await startPlatform({ to: 'http://localhost:3000/webhooks', secret })
 * const client = createClient(platform.writeKey, { endpoint: platform.endpoint })
 * client.track({ userId: 'user-1', event: 'Order Completed' })
 * await client.flush()
 * const { message, attempts } = await platform.delivered({ type: 'track', event: 'Order Completed' })
 * await platform.close()
 */
export async function startPlatform(options: PlatformOptions): Promise<Platform> {
  // The module is loaded only when needed, because no other tool needs its HTTP client.
  const { createPlatform } = await import('./create-platform.ts')
  return createPlatform(options)
}

/** Lets a server listen on loopback. */

import { once } from 'node:events'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Returns its port. A connection that waits for its turn stays open. */
export async function listen(server: Server): Promise<number> {
  server.keepAliveTimeout = 0
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

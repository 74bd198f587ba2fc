/** Puts the demo's app on a port of this machine, or ends with one line that says why that cannot be. */

import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

/** Listens on PORT, by default 3000; 0 takes any that is free. */
export async function listen(listener: RequestListener): Promise<{ server: Server; origin: string }> {
  const port = Number(process.env.PORT || 3000)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) stop('PORT: must be a whole number from 0 to 65535.')
  const server = createServer(listener).listen(port, '127.0.0.1')
  await once(server, 'listening').catch((error: NodeJS.ErrnoException) => {
    const isTaken = error.code === 'EADDRINUSE'
    stop(isTaken ? `Port ${port} is taken. Take any free one: PORT=0` : error.message)
  })
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

function stop(reason: string): never {
  console.error(reason)
  process.exit(1)
}

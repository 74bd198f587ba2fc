/** Starts and closes a `node:http` server on this machine, and watches its connections. */

import { once } from 'node:events'
import type { Server } from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export interface Listening {
  /** `http://127.0.0.1:<port>` or, because test certificates are issued for `localhost`, `https://localhost:<port>`. */
  readonly origin: string
  close(): Promise<void>
}

/**
 * Starts listening.
 *
 * @param port 0 means any free port.
 * @throws Error (as a rejection) with a code of Node.js, such as `EADDRINUSE`.
 */
export async function listen(server: Server, port: number, host = '127.0.0.1'): Promise<Listening> {
  server.listen(port, host)
  await once(server, 'listening')
  const { family, address, port: taken } = server.address() as AddressInfo
  const protocol = server instanceof https.Server ? 'https' : 'http'
  const isNamed = protocol === 'https' && address === '127.0.0.1'
  const name = family === 'IPv6' ? `[${address}]` : address
  return {
    origin: `${protocol}://${isNamed ? 'localhost' : name}:${taken}`,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

/** Counts the connections of a server and the bytes that they receive, and ends the connections on request. */
export function watchConnections(server: Server) {
  // The key is the remote port. A TLS socket cannot send RST, but the TCP socket below it can, and both have the same remote port.
  const sockets = new Map<number | undefined, Socket>()
  let [count, bytes] = [0, 0]

  server.on('connection', (socket: Socket) => {
    count += 1
    const { remotePort } = socket
    sockets.set(remotePort, socket)
    socket.on('close', () => sockets.delete(remotePort))
    socket.on('error', () => {}) // Errors are expected, because connections are ended on purpose.
  })
  server.on(server instanceof https.Server ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.on('data', ({ length }: Buffer) => {
      bytes += length
    })
  })

  return {
    get count(): number {
      return count
    },
    get bytes(): number {
      return bytes
    },
    /** Ends the connection of a socket with RST. */
    reset: ({ remotePort }: Socket): void => void sockets.get(remotePort)?.resetAndDestroy(),
    /** Ends all connections, including those whose TLS handshake has not ended. */
    destroyConnections(): void {
      for (const socket of sockets.values()) socket.destroy()
    },
  }
}

/** The connections of a server: counted, measured, reset and ended. */

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** The connections of a server. */
export interface Connections {
  /** How many were opened so far. */
  readonly count: number
  /** How many bytes were received so far; over TLS the decrypted ones. */
  readonly bytes: number
  /** Ends the connection of this socket with RST. */
  reset(socket: Socket): void
  /** Ends all connections. */
  end(): void
}

/** Watches the connections of a server that does not listen yet. */
export function watchConnections(server: Server, isSecure: boolean): Connections {
  // A TLS socket cannot send RST, but the socket below it can: both have the same remote port.
  const sockets = new Map<number | undefined, Socket>()
  let [count, bytes] = [0, 0]

  server.on('connection', (socket: Socket) => {
    count += 1
    const { remotePort } = socket
    sockets.set(remotePort, socket)
    socket.on('close', () => sockets.delete(remotePort))
    socket.on('error', () => {}) // Connections that are ended on purpose.
  })
  server.on(isSecure ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.on('data', ({ length }: Buffer) => {
      bytes += length
    })
  })

  return {
    get count() {
      return count
    },
    get bytes() {
      return bytes
    },
    reset: ({ remotePort }) => void sockets.get(remotePort)?.resetAndDestroy(),
    end() {
      for (const socket of sockets.values()) socket.destroy()
    },
  }
}

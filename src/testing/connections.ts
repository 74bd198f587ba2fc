/** The connections of a server: counted, measured, reset and ended. */

import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** What is known of the connections of a server. */
export interface Connections {
  /** How many there were so far. */
  readonly count: number
  /** How many bytes came over them so far; over TLS only what was inside. */
  readonly bytes: number
  /** Ends the connection of this socket with RST. */
  reset(socket: Socket): void
  /** Ends them all. */
  end(): void
}

/** Watches a server from before it listens. */
export function watchConnections(server: Server, isSecure: boolean): Connections {
  // A TLS socket cannot send RST, but the one below it can: both have the same port at the other end.
  const sockets = new Map<number | undefined, Socket>()
  let [count, bytes] = [0, 0]

  server.on('connection', (socket: Socket) => {
    count += 1
    const { remotePort } = socket
    sockets.set(remotePort, socket)
    socket.on('close', () => sockets.delete(remotePort))
    socket.on('error', () => {}) // Whoever ends connections on purpose need not hear that they ended.
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

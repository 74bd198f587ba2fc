/** The connections of a client. They do not keep the process alive, and can all be ended at once. */

import { createConnector } from '../kit/connector.ts'
import type { DispatcherLike } from '../kit/post.ts'
import { requireCertificates } from '../kit/runtime.ts'
import { Pool } from '../kit/undici.ts'
import { BATCH_RESPONSE_LIMIT } from '../protocol/limits.ts'
import type { ClientSettings } from './client-options.ts'

/**
 * The time for which an idle connection is kept, in milliseconds, unless the server sets a limit. It is longer than the default time
 * between two flushes.
 */
const KEEP_ALIVE_MS = 30_000

export interface Connections extends DispatcherLike {
  /** Ends all connections, including those that are being opened. A later request opens new ones. */
  closeAll(): Promise<void>
}

export function createConnections(settings: ClientSettings): Connections {
  requireCertificates()
  let pool: Pool | undefined
  let ending = new AbortController()

  return {
    dispatch(options, handler) {
      pool ??= createPool(settings, ending.signal)
      return pool.dispatch(options, handler)
    },
    async closeAll() {
      const ended = pool?.destroy()
      ending.abort() // `destroy` does not end connections that are being opened.
      pool = undefined
      ending = new AbortController()
      await ended
    },
  }
}

function createPool({ origin, maxInFlight, timeoutMs, ca }: ClientSettings, signal: AbortSignal): Pool {
  const connect = createConnector({ ca, timeoutMs, responseLimit: BATCH_RESPONSE_LIMIT, signal })
  return new Pool(origin, {
    connections: maxInFlight,
    keepAliveTimeout: KEEP_ALIVE_MS,
    allowH2: false,
    connect(target, callback) {
      connect(target, (...[error, socket]) => {
        if (error !== null) return callback(error, null)
        // Disables `ref`, which undici calls while it waits for an answer. Otherwise, the socket would keep the process alive.
        callback(null, Object.assign(socket.unref(), { ref: () => socket }))
      })
    },
  })
}

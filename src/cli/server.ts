/** Where servers of the command listen. */

import type { Server } from 'node:http'
import { type Listening, listen } from '../testing/server.ts'
import { UsageError } from './terminal.ts'

/**
 * Starts to listen.
 *
 * @param option What the user passed the port with.
 * @throws UsageError (as a rejection) for a port or an address that cannot be listened on.
 */
export async function listenOn(option: string, server: Server, port: number, host = '127.0.0.1'): Promise<Listening> {
  return listen(server, port, host).catch(({ code, message }: NodeJS.ErrnoException) => {
    const where = `port ${port} of ${host}`
    if (code === 'EADDRINUSE') {
      throw new UsageError(`${option} must be free. Got ${where}, which is in use. Pass another one.`)
    }
    throw new UsageError(`This process cannot listen on ${where}. Got ${message}. Pass another ${option} or --host.`)
  })
}

/** Serves the page of the inspector on a port of this machine, for a subcommand with `--ui`. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { serve } from '../../adapters/node.ts'
import { createEndpoint } from '../inspector/endpoint/endpoint.ts'
import type { EndpointOptions } from '../inspector/endpoint/routes.ts'
import { createLog } from '../options/log.ts'
import { systemClock } from '../time/clock.ts'
import { note, UsageError } from './terminal.ts'

/** A page that is served. */
export interface Page {
  close(): Promise<void>
}

/** What the page shows. */
export type Shown = Pick<EndpointOptions, 'command' | 'journal' | 'series' | 'parts' | 'keep' | 'explain'>

/**
 * Serves the page, and notes its URL.
 *
 * @param port True: any free one.
 * @throws UsageError (as a rejection) for a port that cannot be listened on.
 */
export async function openPage(port: number | true, shown: Shown): Promise<Page> {
  const log = createLog(undefined, undefined, systemClock)
  const endpoint = createEndpoint({ ...shown, log, clock: systemClock, machine: systemClock })
  const server = createServer(serve(endpoint))
  try {
    server.listen(port === true ? 0 : port, '127.0.0.1')
    await once(server, 'listening')
  } catch (error) {
    await endpoint.close()
    const { code, message } = error as NodeJS.ErrnoException
    const found = code === 'EADDRINUSE' ? `port ${port}, which is in use` : message
    throw new UsageError(`--ui must be a free port of this machine. Got ${found}. Pass another one, or none.`)
  }
  const { port: taken } = server.address() as AddressInfo
  note(`The page is at ${endpoint.url(`http://127.0.0.1:${taken}`)}`)
  return {
    async close() {
      await endpoint.close()
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Serves the page of the inspector on a port of this machine, for a subcommand with `--ui`. */

import { createServer } from 'node:http'
import { serve } from '../../adapters/node.ts'
import { createEndpoint, type EndpointOptions } from '../inspector/endpoint/endpoint.ts'
import { createLog } from '../options/log.ts'
import { systemClock } from '../time/clock.ts'
import { listenOn } from './server.ts'
import { note } from './terminal.ts'

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
  const { origin, close } = await listenOn('--ui', server, port === true ? 0 : port).catch(async (error) => {
    await endpoint.close()
    throw error
  })
  note(`The page is at ${endpoint.url(origin)}`)
  return {
    async close() {
      await endpoint.close()
      await close()
    },
  }
}

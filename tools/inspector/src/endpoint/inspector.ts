/** createInspector(): watches the parts, keeps their messages, and shows them on a page. */

import { createServer } from 'node:http'
import { listen, schemasOf, systemClock } from '../../../../src/internals.ts'
import type { Inspector, InspectorOptions } from '../api.ts'
import { createEventCounts } from '../event-counts.ts'
import { createPageServer } from '../page-server.ts'
import { watchEvents } from '../watch-events.ts'
import { watchCollector, watchDestination } from '../watch-outbound.ts'
import { watchReceiver } from '../watch-receiver.ts'
import { createExplain } from './explanations.ts'
import { readListenOptions, readOptions } from './options.ts'
import { partOfDestination, partOfReceiver, type WatchedPart } from './queues.ts'

/**
 * Creates an inspector: a page that shows the messages, queues and dead letters of receivers, destinations and collectors.
 * Only a browser on this machine that has the token of {@link Inspector.url} has access, unless `authorize` decides otherwise.
 *
 * @throws TypeError that names the invalid option.
 * @example
 * const inspector = createInspector({ receiver })
 * console.log(await inspector.listen({ port: 4040 }))
 */
export function createInspector(options: InspectorOptions): Inspector {
  const { receivers, destinations, collectors, ...shared } = readOptions(options)
  const parts: readonly WatchedPart[] = [
    ...[...receivers].map(([name, receiver]) => partOfReceiver(name, receiver)),
    ...[...destinations].map(([name, destination]) => partOfDestination(name, destination)),
    ...[...collectors.keys()].map((name) => ({ name, kind: 'collector' as const })),
  ]
  const watched = [...receivers].map(([name, receiver]) => {
    return { receiver, counts: createEventCounts(name, shared.clock, schemasOf(receiver)) }
  })
  const events = watched.map(({ counts }) => counts)
  const explain = createExplain(receivers, systemClock)
  const page = createPageServer({ ...shared, events, parts, explain })
  const { journal, series, url, handler } = page
  const stops = [
    ...[...receivers].map(([name, receiver]) => watchReceiver(name, receiver, journal, series)),
    ...watched.map(({ receiver, counts }) => watchEvents(receiver, counts)),
    ...[...destinations].map(([name, destination]) => watchDestination(name, destination, journal, series)),
    ...[...collectors].map(([name, collector]) => watchCollector(name, collector, journal, series)),
  ]
  const servers: ReturnType<typeof listen>[] = []

  return {
    url,
    handler,
    async listen(options) {
      const { port, host } = readListenOptions(options)
      const server = listen(createServer(handler), port, host)
      servers.push(server)
      const { origin } = await server
      return shared.authorize === undefined ? url(origin) : `${origin}/`
    },
    forget(ids) {
      for (const counts of events) counts.forget()
      return journal.forget(ids)
    },
    async close() {
      for (const stop of stops) stop()
      await page.close()
      const listening = await Promise.allSettled(servers)
      await Promise.all(listening.map((server) => server.status === 'fulfilled' && server.value.close()))
    },
  }
}

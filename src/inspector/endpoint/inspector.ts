/** createInspector(): watches the parts, keeps what they do, and shows it on a page. */

import { schemasOf } from '../../receiver/inspected.ts'
import { systemClock } from '../../time/clock.ts'
import type { Inspector, InspectorOptions } from '../api.ts'
import { createEventCounts } from '../event-counts.ts'
import { createJournal } from '../journal.ts'
import { createSeries } from '../series.ts'
import { watchEvents } from '../watch-events.ts'
import { watchCollector, watchDestination } from '../watch-outbound.ts'
import { watchReceiver } from '../watch-receiver.ts'
import { createEndpoint } from './endpoint.ts'
import { createExplanations } from './explanations.ts'
import { createFaults } from './faults.ts'
import { readOptions } from './options.ts'
import { partOfDestination, partOfReceiver, type WatchedPart } from './queues.ts'

/**
 * Creates an inspector: a page that shows the messages of receivers, destinations and collectors, their queues and dead letters.
 * Only a browser of this machine that has the token of {@link Inspector.url} gets in, unless `authorize` decides.
 *
 * @throws TypeError that names the option.
 * @example
 * const inspector = createInspector({ receiver })
 * app.use('/hookline', serve(inspector))
 * console.log(inspector.url('http://127.0.0.1:3000/hookline'))
 */
export function createInspector(options: InspectorOptions): Inspector {
  const { receivers, destinations, collectors, isDevelopment, ...shared } = readOptions(options)
  const parts: readonly WatchedPart[] = [
    ...[...receivers].map(([name, receiver]) => partOfReceiver(name, receiver)),
    ...[...destinations].map(([name, destination]) => partOfDestination(name, destination)),
    ...[...collectors.keys()].map((name) => ({ name, kind: 'collector' as const })),
  ]
  const journal = createJournal(shared.keep, shared.clock, shared.log)
  const series = createSeries(shared.clock)
  const watched = [...receivers].map(([name, receiver]) => {
    return { receiver, counts: createEventCounts(name, shared.clock, schemasOf(receiver)) }
  })
  const events = watched.map(({ counts }) => counts)
  const faults = isDevelopment ? createFaults(receivers, shared.clock) : undefined
  const { explain, close: closeExplanations } = createExplanations(receivers, systemClock)
  const endpoint = createEndpoint({ ...shared, journal, series, events, parts, machine: systemClock, faults, explain })
  const stops = [
    ...[...receivers].map(([name, receiver]) => watchReceiver(name, receiver, journal, series)),
    ...watched.map(({ receiver, counts }) => watchEvents(receiver, counts)),
    ...[...destinations].map(([name, destination]) => watchDestination(name, destination, journal, series)),
    ...[...collectors].map(([name, collector]) => watchCollector(name, collector, journal, series)),
  ]

  return {
    ...endpoint,
    withFaults: (receiver) => faults?.wrap(receiver) ?? receiver,
    forget(ids) {
      for (const counts of events) counts.forget()
      return journal.forget(ids)
    },
    async close() {
      for (const stop of stops) stop()
      await Promise.all([endpoint.close(), closeExplanations()])
      journal.close()
    },
  }
}

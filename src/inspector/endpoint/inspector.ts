/** createInspector(): watches the parts, keeps what they do, and shows it on a page. */

import { systemClock } from '../../time/clock.ts'
import type { Inspector, InspectorOptions } from '../api.ts'
import type { Journal } from '../journal.ts'
import type { SeriesRecorder } from '../series.ts'
import { createEndpoint } from './endpoint.ts'
import { readOptions } from './options.ts'
import { partOfDestination, partOfReceiver, type WatchedPart } from './parts.ts'

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
  const settings = readOptions(options)
  const { receivers, destinations, collectors, isDevelopment, ...shared } = settings
  const parts: readonly WatchedPart[] = [
    ...[...receivers].map(([name, receiver]) => partOfReceiver(name, receiver)),
    ...[...destinations].map(([name, destination]) => partOfDestination(name, destination)),
    ...[...collectors.keys()].map((name) => ({ name, kind: 'collector' as const })),
  ]
  const journal = emptyJournal
  const endpoint = createEndpoint({
    ...shared,
    journal,
    series: emptySeries,
    parts,
    machine: systemClock,
    faultsOf: isDevelopment ? receivers : undefined,
  })

  return {
    ...endpoint,
    forget: (ids) => journal.forget(ids),
    async close() {
      await endpoint.close()
      journal.close()
    },
  }
}

const emptyJournal: Journal = {
  changesSince: (version) => ({ version: 1, isReset: version === undefined, rows: [] }),
  onChange: () => () => {},
  detail: () => undefined,
  refused: () => undefined,
  rowOfJob: () => undefined,
  changed: () => {},
  forget: () => 0,
  close: () => {},
}
const emptySeries = {} as SeriesRecorder

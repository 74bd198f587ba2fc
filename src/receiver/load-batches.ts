/** Loads what takes batches, for receivers that take them: other receivers never load it. */

import type { FailedRequest } from '../handling/diagnostics.ts'
import type { OpenDelivery } from '../handling/open-delivery.ts'
import type { Batch, createOpenBatch } from './batches.ts'

/** As `createOpenBatch`, but the first requests may have to wait until it is loaded. */
export function loadBatches(...parts: Parameters<typeof createOpenBatch>) {
  let open: ReturnType<typeof createOpenBatch> | undefined
  const loading = import('./batches.ts').then((batches) => {
    open = batches.createOpenBatch(...parts)
    return open
  })
  loading.catch(() => {}) // Each request fails with it.
  return (batch: OpenDelivery, request: FailedRequest): Batch | undefined | Promise<Batch | undefined> =>
    open === undefined ? loading.then((loaded) => loaded(batch, request)) : open(batch, request)
}

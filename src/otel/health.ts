/** What a health check says, as gauges that are read when metrics are collected. */

import type { Meter } from '@opentelemetry/api'
import type { Health } from '../receiver/health.ts'

/** Begins to observe. Returns what ends it. */
export function observeHealth(meter: Meter, health: () => Promise<Health> | Health): () => void {
  const jobs = (name: string, description: string) => {
    return meter.createObservableGauge(`hookline.inbox.${name}`, { description, unit: '{message}' })
  }
  const waiting = jobs('waiting', 'Messages that wait to be handled, now or later.')
  const active = jobs('active', 'Messages that are being handled.')
  const dead = jobs('dead', 'Messages on the list of the dead.')
  const oldest = meter.createObservableGauge('hookline.inbox.oldest_due_age', {
    description: 'How long the message that is due the longest has been due.',
    unit: 's',
  })
  const gauges = [waiting, active, dead, oldest]

  const read: Parameters<Meter['addBatchObservableCallback']>[0] = async (result) => {
    const now = await health()
    if (now.status === 'unavailable') return // Its zeros are not how it is.
    result.observe(waiting, now.waiting)
    result.observe(active, now.active)
    result.observe(dead, now.dead)
    result.observe(oldest, now.oldestDueAgeMs / 1000)
  }
  meter.addBatchObservableCallback(read, gauges)
  return () => meter.removeBatchObservableCallback(read, gauges)
}

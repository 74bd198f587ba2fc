/** Creates gauges from health checks, for inboxes and for the queues of destinations. */

import type { Attributes, Meter, ObservableGauge } from '@opentelemetry/api'
import type { Health } from '../store/health.ts'

/** Reads the health of a receiver or a destination: `() => receiver.health()`. */
export type ReadHealth = () => Promise<Health> | Health

/** Creates the gauges, which call `checks` when metrics are collected. Returns a function that removes the gauges. */
export function observeHealth(meter: Meter, checks: ReadHealth | Readonly<Record<string, ReadHealth>>): () => void {
  const inbox = createGauges(meter, 'inbox')
  const destination = createGauges(meter, 'destination')
  const named: [ReadHealth, Attributes][] =
    typeof checks === 'function'
      ? [[checks, {}]]
      : Object.entries(checks).map(([name, check]) => [check, { 'hookline.name': name }])

  const observeGauges: Parameters<Meter['addBatchObservableCallback']>[0] = async (result) => {
    await Promise.all(
      named.map(async ([check, attributes]) => {
        const health = await check()
        if (health.status === 'unavailable') return // All of its numbers are 0, because they could not be measured.
        const { waiting, active, deadLetters, oldest } = 'skipped' in health ? destination : inbox
        result.observe(waiting, health.waiting, attributes)
        result.observe(active, health.active, attributes)
        result.observe(deadLetters, health.deadLetters, attributes)
        result.observe(oldest, health.oldestDueAgeMs / 1000, attributes)
      }),
    )
  }
  const gauges = [...Object.values(inbox), ...Object.values(destination)]
  meter.addBatchObservableCallback(observeGauges, gauges)
  return () => meter.removeBatchObservableCallback(observeGauges, gauges)
}

function createGauges(meter: Meter, owner: 'inbox' | 'destination') {
  const done = owner === 'inbox' ? 'handled' : 'sent'
  const create = (name: string, description: string, unit = '{message}'): ObservableGauge =>
    meter.createObservableGauge(`hookline.${owner}.${name}`, { description, unit })
  return {
    waiting: create('waiting', `Messages that wait to be ${done}, now or later.`),
    active: create('active', `Messages that are being ${done}.`),
    deadLetters: create('dead_letters', 'Messages that are dead letters.'),
    oldest: create('oldest_due_age', 'How long the oldest due message has been due.', 's'),
  }
}

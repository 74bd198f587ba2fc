/** Reads the messages of a source to its end. */

import { openTraffic, type TrafficOptions } from '../../src/types/traffic.ts'

export async function readTraffic(location: string, options: TrafficOptions = {}) {
  const traffic = await openTraffic(location, options)
  if (traffic === undefined) return undefined
  const skipped: Record<string, number> = {}
  const seen = []
  for await (const each of traffic.messages((reason) => (skipped[reason] = (skipped[reason] ?? 0) + 1))) seen.push(each)
  return { events: seen.map(({ message }) => 'event' in message && message.event), seen, skipped }
}

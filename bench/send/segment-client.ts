/** The client of Segment, @segment/analytics-node. */

import { Analytics } from '@segment/analytics-node'
import { drive, settingsFor } from './client.ts'
import type { Contender } from './contender.ts'
import { writeKey } from './message.ts'

/** @param what `send` or `record`. */
export async function open(url: string, what = 'send'): Promise<Contender> {
  const { origin: host, pathname: path } = new URL(url)
  const { flushAt, flushAfterMs } = settingsFor(what)
  const analytics = new Analytics({ writeKey, host, path, flushAt, flushInterval: flushAfterMs })
  analytics.on('error', ({ reason }) => console.error(reason))
  await analytics.ready
  return drive(analytics)
}

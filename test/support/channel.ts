/** What a diagnostics channel publishes while a test runs. */

import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { onTestFinished } from 'vitest'

/** Keeps what a channel publishes from now on to the end of the test. */
export function hear<Event>(channel: string): Event[] {
  const events: Event[] = []
  const listener = (event: unknown) => void events.push(event as Event)
  subscribe(channel, listener)
  onTestFinished(() => void unsubscribe(channel, listener))
  return events
}

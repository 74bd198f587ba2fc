/** The client of Hookline. */

import { createClient } from 'hookline/client'
import { drive, settingsFor } from './client.ts'
import type { Contender } from './contender.ts'
import { writeKey } from './message.ts'

/** @param what `send` or `record`. */
export async function open(url: string, what = 'send'): Promise<Contender> {
  return drive(createClient(writeKey, { endpoint: url, ...settingsFor(what) }))
}

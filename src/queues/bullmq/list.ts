/** Lists the queues of a Redis, for an observer that knows the name of none. */

import { connect } from './connection.ts'
import type { BullmqQueueOptions } from './options.ts'
import { readOptions } from './options.ts'
import { findNames } from './server.ts'

/** The names of the queues of BullMQ under the prefix. Changes nothing. */
export async function listQueues(options: Omit<BullmqQueueOptions, 'name' | 'observe'>): Promise<string[]> {
  const settings = readOptions({ ...options, name: 'any', observe: true })
  const connection = connect(settings, async () => {})
  try {
    return await connection.call(({ client }) => findNames(client, settings.prefix))
  } finally {
    await connection.close()
  }
}

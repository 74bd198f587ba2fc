/** What encryption adds to a message of an inbox in memory: to seal it when it is stored, and to open it for its handler. */

import { randomBytes, randomUUID } from 'node:crypto'
import { createReceiver } from 'hookline'
import { memoryQueue } from 'hookline/queues/memory'
import { secret, signedHeaders, trackMessage } from '../message.ts'
import { printTable, verdict } from '../table.ts'

const MESSAGES = 100
const ROUNDS = 20
const MAX_US = 5
const encryption = { keys: [{ id: 'k1', key: randomBytes(32) }] }
const body = trackMessage(1024)
const headers = signedHeaders(body)

export async function measureEncryption(rounds: number): Promise<void> {
  const [plain, encrypted] = [openInbox(false), openInbox(true)]
  const best = { plain: Number.POSITIVE_INFINITY, encrypted: Number.POSITIVE_INFINITY }
  for (let round = 0; round < ROUNDS * rounds; round += 1) {
    best.plain = Math.min(best.plain, await plain())
    best.encrypted = Math.min(best.encrypted, await encrypted())
  }
  const added = best.encrypted - best.plain
  console.log(
    `## Encryption of an inbox in memory, the best of ${ROUNDS * rounds} rounds of ${MESSAGES} messages of 1 KB\n`,
  )
  printTable(
    ['CPU time, µs a message', 'measured', 'target', ''],
    [
      ['from the request to the handler, plain', best.plain.toFixed(1), '–', ''],
      ['what encryption adds to it', added.toFixed(1), `≤ ${MAX_US}`, verdict(added <= MAX_US)],
    ],
  )
}

/** Returns what handles a round of messages, and measures the CPU time of each. */
function openInbox(isEncrypted: boolean): () => Promise<number> {
  const queue = memoryQueue()
  const inbox = { queue, concurrency: 50, key: () => randomUUID(), ...(isEncrypted && { encryption }) }
  const receiver = createReceiver({ secret, inbox }).on('track', () => {})
  receiver.start()
  return async () => {
    const since = process.cpuUsage()
    for (let sent = 0; sent < MESSAGES; sent += 1) await receiver.receive(body, headers)
    await queue.drain()
    const { user, system } = process.cpuUsage(since)
    return (user + system) / MESSAGES
  }
}

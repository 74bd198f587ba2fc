/** A receiver on node:http with an inbox; its handlers write the id of each message into the journal. */

import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { serve } from '../../../adapters/node.ts'
import { createReceiver, type Delivery, type TrackMessage } from '../../../src/index.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { openJournal } from '../journal.ts'
import { openQueue, type Place, secret } from '../place.ts'
import { answerQuestions, listen, readSettings, sayReady } from './answers.ts'

export interface ReceiverSettings {
  readonly place: Place
  readonly journal: string
  readonly by?: string
  /** How many attempts of a hundred fail, before the id is written. */
  readonly failing?: number
  /** Whether it takes one message and never finishes it. */
  readonly holds?: boolean
  /** Whether it has named handlers: `mail`, which ends at once, and `crm`, which waits half a second and `kills` the process, or ends. */
  readonly named?: 'kills' | 'ends'
  /** The id of the replay that `replay` begins or goes on with. With it, messages that were handled are kept. */
  readonly replays?: string
  /** How many groups there are: of two messages one is in a group. That two of a group are handled at once is written as an id. */
  readonly groups?: number
  /** The most messages of a batch: with it, the handler gets batches, and 5 messages are handled at a time beside. */
  readonly maxMessages?: number
  /** The most that its handler takes, in milliseconds. */
  readonly handlingMs?: number
  /** Of its end, in milliseconds. */
  readonly graceMs?: number
}

const {
  place,
  journal,
  by = 'one',
  failing = 0,
  holds = false,
  handlingMs = 5,
  graceMs = 5_000,
  named,
  replays,
  groups,
  maxMessages,
} = readSettings<ReceiverSettings>()
const RETRY_MS = 20
const KILL_AFTER_MS = 500
const DAY_MS = 24 * 60 * 60_000
/** The sender sees what could not be stored. */
const EXPECTED: readonly string[] = ['handler_failed', 'lease_lapsed', 'inbox_unavailable', 'shutting_down']

const write = openJournal(journal, by)
const active = new Set<string>()

function groupOf({ messageId }: { readonly messageId?: string }): string | undefined {
  const number = Number(messageId)
  return groups === undefined || number % 2 === 0 ? undefined : `group ${number % groups}`
}

/** Calls a handler, and writes down if another one handles a message of the group. */
async function inTurn(message: { readonly messageId?: string }, handle: () => Promise<void>): Promise<void> {
  const group = groupOf(message)
  if (group === undefined) return handle()
  if (active.has(group)) write(`${message.messageId} at the same time as another of ${group}`)
  active.add(group)
  await handle().finally(() => active.delete(group))
}

const queue = await openQueue(place)
const receiver = createReceiver({
  secret,
  inbox: {
    queue,
    concurrency: holds ? 1 : maxMessages === undefined ? 50 : 5,
    retries: () => RETRY_MS,
    ...(groups !== undefined && { groupBy: groupOf }),
    ...(replays !== undefined && { history: { maxAgeMs: DAY_MS } }),
  },
  onError({ code, message, cause }) {
    const isExpected = EXPECTED.includes(code) || message.includes('the process died')
    if (!isExpected) console.error(`${by}: ${code}: ${message}`, cause)
  },
})
async function callCrm(id: string): Promise<void> {
  write(`${id}:crm`)
  if (named === 'ends') return
  await wait(KILL_AFTER_MS)
  process.kill(process.pid, 'SIGKILL')
}
if (named !== undefined) {
  receiver.on('track', ({ messageId }) => write(`${messageId}:mail`), { name: 'mail' })
  receiver.on('track', ({ messageId }) => callCrm(`${messageId}`), { name: 'crm' })
}
if (maxMessages !== undefined) {
  const handle = async (messages: readonly { readonly messageId?: string }[]) => {
    await wait(Math.random() * handlingMs)
    for (const { messageId } of messages) write(String(messageId))
  }
  receiver.onBatch('track', handle, { maxMessages, maxWaitMs: 20 })
} else {
  receiver.on('track', handleOne)
}
receiver.start()

function handleOne(message: TrackMessage, { replay }: Delivery): Promise<void> {
  return inTurn(message, async () => {
    const { messageId } = message
    if (holds) {
      write(String(messageId))
      await new Promise(() => {})
    }
    await wait(Math.random() * handlingMs)
    if (Math.random() * 100 < failing) throw new Error('at random')
    write(replay === undefined ? String(messageId) : `${messageId}:${replay.id}`)
  })
}

const server = createServer(serve(receiver))
answerQuestions({
  counts: () => queue.counts(),
  reasons: async () => (await receiver.deadLetters({ limit: 10_000 })).map(({ reason }) => reason),
  redrive: () => receiver.redrive('all'),
  replay: () => receiver.replay({ id: replays ?? '' }),
  async handled() {
    let count = 0
    for await (const _ of receiver.history()) count += 1
    return count
  },
  forget: () => receiver.forget(fixtures.track.userId),
  drain: () => queue.drain(),
  async close() {
    await receiver.close({ graceMs })
    server.closeAllConnections()
    server.close()
    process.disconnect()
  },
})
sayReady(await listen(server))

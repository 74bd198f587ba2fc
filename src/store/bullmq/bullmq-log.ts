/** The log of a queue: a Redis stream next to the BullMQ keys. An entry is written before its job is completed. */

import { createBatcher } from '../../kit/batcher.ts'
import type { LogStore } from '../queue-store.ts'
import type { LogEntry } from '../queue-types.ts'
import { takePage } from '../walk.ts'
import type { Connection } from './bullmq-connection.ts'

/**
 * Appends entries. A cursor begins with the time or, if the clock was set back, with the time of the latest cursor, so cursors never
 * decrease.
 */
const APPEND = `
  local last = redis.call('HMGET', KEYS[1], 'ms', 'seq')
  local ms, seq, bytes = math.max(ARGV[1], last[1] or 0), 0, 0
  if ms == tonumber(last[1] or 0) then seq = last[2] + 1 end
  for i = 2, #ARGV, 3 do bytes = bytes + #ARGV[i + 1] end
  redis.call('HSET', KEYS[1], 'ms', ms, 'seq', seq + #ARGV)
  redis.call('HINCRBY', KEYS[1], 'bytes', bytes)
  for i = 2, #ARGV, 3 do
    local cursor = string.format('%.0f-%.0f', ms, seq + i)
    redis.call('XADD', KEYS[2], cursor, 'at', ARGV[1], 'id', ARGV[i], 'body', ARGV[i + 1], 'note', ARGV[i + 2])
  end`

/** Drops the oldest entries. The fields of an entry are `at`, `id`, `body` and `note`, in this order. */
const TRIM = `
  local bytes, count = tonumber(redis.call('HGET', KEYS[1], 'bytes') or 0), 0
  while count < tonumber(ARGV[3]) do
    local entry = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
    if not entry or (tonumber(entry[2][2]) >= tonumber(ARGV[1]) and bytes <= tonumber(ARGV[2])) then break end
    bytes, count = bytes - #entry[2][6], count + redis.call('XDEL', KEYS[2], entry[1])
  end
  redis.call('HSET', KEYS[1], 'bytes', bytes)
  return count`

const REMOVE = `
  local count = 0
  for _, cursor in ipairs(ARGV) do
    local entry = redis.call('XRANGE', KEYS[2], cursor, cursor)[1]
    if entry then
      redis.call('HINCRBY', KEYS[1], 'bytes', -#entry[2][6])
      count = count + redis.call('XDEL', KEYS[2], cursor)
    end
  end
  return count`

/** The maximum number of entries that one call reads. */
const MAX_READ = 512
const MANY_BYTES = 1024 * 1024

interface Appended {
  readonly id: string
  readonly body: Buffer
  readonly note: Buffer
}

export interface BullmqLog extends LogStore {
  append(id: string, body: Uint8Array, note: Uint8Array): Promise<void>
}

/** @param key The key of the hash that holds the counters. The stream with the entries has a key that begins with this key. */
export function createLog(connection: Connection, key: string, now: () => number): BullmqLog {
  const stream = `${key}:log`

  function runScript(script: string, ...args: (string | number | Buffer)[]): Promise<number> {
    return connection.call(({ client }) => client.eval(script, 2, key, stream, ...args) as Promise<number>)
  }

  const appends = createBatcher<Appended>({
    send: async (entries) =>
      void (await runScript(APPEND, Math.floor(now()), ...entries.flatMap(({ id, body, note }) => [id, body, note]))),
    weigh: ({ body, note }) => body.byteLength + note.byteLength,
    maxWeight: MANY_BYTES,
    concurrency: 4,
    isFaultOfItems: () => false,
  })

  return {
    append: (id, body, note) => appends.add({ id, body: toBuffer(body), note: toBuffer(note) }),
    async list({ since, until, after, ...bounds }) {
      const sinceMs = since?.getTime() ?? 0
      const entries: LogEntry[] = []
      let start = after !== undefined && Number.parseInt(after, 10) >= sinceMs ? `(${after}` : `${Math.ceil(sinceMs)}`
      for (let most = Math.min(bounds.limit, 16); ; ) {
        const found = await connection.call(({ client }) => client.xrangeBuffer(stream, start, '+', 'COUNT', most))
        const read = found.map(toEntry)
        entries.push(...read.filter(({ handledAt: at }) => !(since && at < since) && !(until && at >= until)))
        const page = takePage(entries, bounds)
        if (page.length < entries.length || page.length === bounds.limit || found.length < most) return page
        start = `(${read.at(-1)?.cursor}` // With `(`, Redis begins after the cursor.
        const bytes = read.reduce((sum, { body }) => sum + body.byteLength, 0)
        most = bytes < MANY_BYTES ? Math.min(2 * most, MAX_READ) : Math.max(1, most >> 1)
      }
    },
    trim: ({ before, maxBytes, limit }) => runScript(TRIM, before.getTime(), maxBytes, limit),
    remove: (cursors) => runScript(REMOVE, ...cursors),
  }
}

function toEntry([cursor, fields]: [Buffer, Buffer[]]): LogEntry {
  const [, at, , id, , body, , note] = fields as [Buffer, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer, Buffer]
  return { id: `${id}`, body, note, handledAt: new Date(Number(at)), cursor: `${cursor}` }
}

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

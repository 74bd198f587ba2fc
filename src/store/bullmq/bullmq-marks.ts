/** The marks of a queue: two sorted sets in Redis, next to the BullMQ keys. One is ordered by version, the other by end. */

import type { MarkStore } from '../queue-store.ts'
import type { Connection } from './bullmq-connection.ts'

/** Sets marks. The Redis hash of the queue holds the version number that was assigned last. */
const SET = `
  for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. ARGV[1])) do redis.call('ZREM', KEYS[2], key) end
  redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', '(' .. ARGV[1])
  for i = 2, #ARGV, 2 do
    redis.call('ZADD', KEYS[2], redis.call('HINCRBY', KEYS[1], 'marks', 1), ARGV[i])
    redis.call('ZADD', KEYS[3], ARGV[i + 1], ARGV[i])
  end`

/** Lists the key, the version and the end of each mark. */
const LIST = `
  local found = {}
  local keys = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. ARGV[1], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[2])
  for i = 1, #keys, 2 do
    found[#found + 1] = { keys[i], keys[i + 1], redis.call('ZSCORE', KEYS[3], keys[i]) }
  end
  return found`

/** @param key The key of the hash that holds the last version. The keys of the marks begin with this key. */
export function createMarks(connection: Connection, key: string): MarkStore {
  const keys = [key, `${key}:marks`, `${key}:marks-ended`]

  function runScript<T>(script: string, ...args: (string | number)[]): Promise<T> {
    return connection.call(({ client }) => client.eval(script, keys.length, ...keys, ...args) as Promise<T>)
  }

  return {
    set: (marks, endedBefore) => {
      const pairs = marks.flatMap(({ key, until }) => [key, until.getTime()])
      return runScript(SET, endedBefore.getTime(), ...pairs)
    },
    async list(version, limit) {
      const found = await runScript<[key: string, version: string, until: string][]>(LIST, version, limit)
      return found.map(([key, at, until]) => ({ key, until: new Date(Number(until)), version: Number(at) }))
    },
  }
}

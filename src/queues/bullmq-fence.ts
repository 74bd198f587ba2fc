/** Changes in Redis that are made only while a job is where it was: each is one step there, so nobody comes between. */

import type { Redis } from 'ioredis'
import type { Memo } from './bullmq-job.ts'

/** Where a job is looked for: the key of the dead, its own key, and its id. */
export interface Place {
  readonly dead: string
  readonly key: string
  readonly id: string
}

/** Keeps it beside the body of a job under the lock of this token: one whose lease is over changes nothing. */
export async function noteLocked(client: Redis, key: string, token: string, memo: Memo): Promise<void> {
  await client.eval(NOTE_LOCKED, 2, `${key}:lock`, key, token, JSON.stringify(memo))
}

/** Takes back that a job was handed out, while it is under the lock of this token. */
export async function discountLocked(client: Redis, key: string, token: string): Promise<void> {
  await client.eval(DISCOUNT_LOCKED, 2, `${key}:lock`, key, token)
}

/** Keeps it beside the body of a job that is dead. */
export async function noteDead(client: Redis, { dead, key, id }: Place, memo: Memo): Promise<void> {
  await client.eval(NOTE_DEAD, 2, dead, key, id, JSON.stringify(memo))
}

/** Forgets a job that is dead. Returns whether it was. */
export async function removeDead(client: Redis, { dead, key, id }: Place): Promise<boolean> {
  return (await client.eval(REMOVE_DEAD, 3, dead, key, `${key}:logs`, id)) === 1
}

const NOTE_LOCKED = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('HSET', KEYS[2], 'progress', ARGV[2]) end"
const DISCOUNT_LOCKED = "if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('HINCRBY', KEYS[2], 'ats', -1) end"
const NOTE_DEAD = "if redis.call('ZSCORE', KEYS[1], ARGV[1]) then redis.call('HSET', KEYS[2], 'progress', ARGV[2]) end"
const REMOVE_DEAD =
  "if redis.call('ZREM', KEYS[1], ARGV[1]) == 0 then return 0 end redis.call('DEL', KEYS[2], KEYS[3]) return 1"

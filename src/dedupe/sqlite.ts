/**
 * Remembers handled messages in a SQLite file: across restarts, and for several processes of one machine. Across
 * machines, use an inbox.
 *
 * @module hookline/dedupe/sqlite
 */

import { randomUUID } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { HooklineError } from '../protocol/error.ts'
import { refuseUnknown, requireText, requireWhole } from '../protocol/options.ts'
import { adviceFor } from '../protocol/sqlite-advice.ts'
import type { Dedupe } from './dedupe.ts'
import { type DedupeTimes, readShared, requireKey, SHARED } from './settings.ts'
import { openFile } from './sqlite-file.ts'

export type { Claim, Claimed, Dedupe } from './dedupe.ts'
export type { DedupeTimes } from './settings.ts'

/** What `sqliteDedupe` takes. */
export interface SqliteDedupeOptions extends DedupeTimes {
  /** The file; it is made when there is none, and two more beside it. Best one of its own. Some 150 bytes a message. */
  readonly path: string
  /** Keeps receivers apart that share the file: each remembers what came under its name only. Default `dedupe`. */
  readonly name?: string
  /**
   * How long a call waits while another process writes to the file, in milliseconds. Default 50. This process does
   * nothing else meanwhile. Past it the call throws, and the sender comes back.
   */
  readonly busyTimeoutMs?: number
}

/**
 * Opens a store in a file.
 *
 * - A claim and its confirm take some 50 microseconds, without waiting for the disk but when SQLite tidies up, some
 *   milliseconds each few hundred messages.
 * - When a process dies, its claims end with their lease. When the power fails, the last claims and confirms may be lost:
 *   those messages are handled again.
 * - When somebody sets the machine's clock back, claims and windows last no longer than they were to, from then on. Set
 *   forward, they end early.
 *
 * @throws TypeError that names the option; HooklineError `dedupe_unavailable` when the file cannot be used: it says
 *   what to do.
 * @example
 * const receiver = createReceiver({ secret, dedupe: sqliteDedupe({ path: 'handled.sqlite' }) })
 */
export function sqliteDedupe(options: SqliteDedupeOptions): Dedupe {
  const { path, name, busyTimeoutMs, windowMs, leaseMs, clock } = readOptions(options)
  const database = open(path, busyTimeoutMs)
  const statements = {
    claim: database.prepare(`
      INSERT INTO hookline_dedupe (name, key, token, until, for_ms) VALUES (:name, :key, :token, :now + :leaseMs, :leaseMs)
      ON CONFLICT (name, key) DO UPDATE SET token = excluded.token, until = excluded.until, for_ms = excluded.for_ms
      WHERE until <= :now`),
    look: database.prepare(`
      SELECT token IS NULL AS isDone, until > :now + for_ms AS isAhead FROM hookline_dedupe WHERE name = :name AND key = :key`),
    clamp: database.prepare(`
      UPDATE hookline_dedupe SET until = :now + for_ms WHERE name = :name AND key = :key AND until > :now + for_ms`),
    confirm: database.prepare(`
      INSERT INTO hookline_dedupe (name, key, token, until, for_ms) VALUES (:name, :key, NULL, :now + :windowMs, :windowMs)
      ON CONFLICT (name, key) DO UPDATE SET token = NULL, until = excluded.until, for_ms = excluded.for_ms
      WHERE token = :token OR until <= :now`),
    release: database.prepare('DELETE FROM hookline_dedupe WHERE name = :name AND key = :key AND token = :token'),
    prune: database.prepare(`
      DELETE FROM hookline_dedupe WHERE (name, key) IN
        (SELECT name, key FROM hookline_dedupe WHERE until <= :now ORDER BY until LIMIT ${2 * CLAIMS_A_PRUNING})`),
  }
  let claims = 0

  /** Forgets some of what ended, twice as much as came since. */
  function prune(now: number): void {
    if (claims % CLAIMS_A_PRUNING === 0) statements.prune.run({ now })
    claims += 1
  }

  /** What keeps a key from being claimed. */
  function whyNot(key: string, now: number): 'in_progress' | 'done' {
    const row = statements.look.get({ name, key, now })
    if (row?.isAhead === 1) statements.clamp.run({ name, key, now })
    return row?.isDone === 1 ? 'done' : 'in_progress' // Without a row it was that, a moment ago.
  }

  return {
    claim(key) {
      requireKey(key)
      if (!database.isOpen) throw new HooklineError('shutting_down', 'The store of handled messages is closed.')
      const token = randomUUID()
      const now = clock.now()
      const obstacle = attempt(() => {
        prune(now)
        return statements.claim.run({ name, key, token, now, leaseMs }).changes === 1 ? undefined : whyNot(key, now)
      })
      if (obstacle !== undefined) return obstacle
      let isSettled = false
      return {
        confirm() {
          if (isSettled) return
          attempt(() => statements.confirm.run({ name, key, token, now: clock.now(), windowMs }))
          isSettled = true
        },
        release() {
          if (isSettled) return
          attempt(() => statements.release.run({ name, key, token }))
          isSettled = true
        },
      }
    },
    close() {
      if (database.isOpen) database.close()
    },
  }
}

const CLAIMS_A_PRUNING = 32

function open(path: string, busyTimeoutMs: number): DatabaseSync {
  try {
    return openFile(path, busyTimeoutMs)
  } catch (cause) {
    const message = `The store of handled messages cannot use ${path}: ${adviceFor(path, cause)}`
    throw new HooklineError('dedupe_unavailable', message, { cause })
  }
}

function attempt<T>(step: () => T): T {
  try {
    return step()
  } catch (cause) {
    const { message } = cause as Error
    throw new HooklineError('dedupe_unavailable', `The store of handled messages failed: ${message}.`, { cause })
  }
}

function readOptions(options: SqliteDedupeOptions) {
  if (typeof options !== 'object' || options === null) throw new TypeError('sqliteDedupe: give it options, { path }.')
  refuseUnknown(options, [...SHARED, 'path', 'name', 'busyTimeoutMs'])
  const { path, name = 'dedupe', busyTimeoutMs = 50 } = options
  requireText('path', path)
  requireText('name', name)
  return {
    path,
    name,
    busyTimeoutMs: requireWhole('busyTimeoutMs', busyTimeoutMs, 0, 60_000),
    ...readShared(options),
  }
}

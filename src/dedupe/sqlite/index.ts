/**
 * Remembers handled messages in a SQLite file: across restarts, and for several processes of one machine. Across
 * machines, use an inbox.
 *
 * @module hookline/dedupe/sqlite
 */

import { randomUUID } from 'node:crypto'
import { HooklineError } from '../../message/error.ts'
import { checkOptions, requireText, whole } from '../../options/checks.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import { inTransaction, openSqlite, prepareTables, realPathOf, type Tables, UnusableFile } from '../../sqlite/file.ts'
import { watchFile } from '../../sqlite/watch.ts'
import { closed, type DedupeTimes, readTimes, requireKey, TIMES_CHECKS } from '../settings.ts'
import type { Dedupe } from '../store.ts'

export type { DedupeTimes } from '../settings.ts'
export type { Claim, Claimed, Dedupe } from '../store.ts'

/** What `sqliteDedupe` takes. */
export interface SqliteDedupeOptions extends DedupeTimes {
  /** The file, created if it does not exist, and two more beside it. Some 150 bytes a message. Best a file of its own. */
  readonly path: string
  /** Keeps receivers apart that share the file: each remembers only the messages under its name. Default `dedupe`. */
  readonly name?: string
  /**
   * How long a call waits while another process writes to the file, in milliseconds. It blocks this process. After that the
   * call throws, and the sender tries again. Default 50.
   */
  readonly timeoutMs?: number
}

const requirePath = (name: string, path: unknown) => requireText(name, path, 'handled.sqlite')

/**
 * Remembers handled messages in a file.
 *
 * - A claim and its confirm take some 70 microseconds. They do not wait for the disk, except for some milliseconds every few
 *   hundred messages, when SQLite moves its log into the file.
 * - When a process dies, its claims end with their lease. When the power fails, the last claims and confirms may be lost:
 *   those messages are handled again.
 * - After the machine's clock is set back, a claim lasts no longer than its lease, and a message is remembered no longer
 *   than the dedupe window, from then on. After it is set forward, they end early.
 *
 * @throws TypeError that names the option; HooklineError `dedupe_unavailable` when the file cannot be used.
 * @example
 * const receiver = createReceiver({ secret, dedupe: sqliteDedupe({ path: 'handled.sqlite' }) })
 */
export function sqliteDedupe(options: SqliteDedupeOptions): Dedupe {
  const checks = { ...TIMES_CHECKS, path: requirePath, name: requireText, timeoutMs: whole(0, 60_000) }
  checkOptions('sqliteDedupe', options, checks)
  const { path, name = 'dedupe', timeoutMs = 50 } = options
  requirePath('path', path)
  const { dedupeWindowMs, leaseMs, clock } = readTimes(options)
  let open: ReturnType<typeof openStatements> | undefined = attempt(path, () => openStatements(path, timeoutMs))
  let isClosed = false
  let claims = 0

  /** What is written to a file that was removed would be forgotten with the process. */
  function run<T>(step: (statements: Statements) => T): T {
    return attempt(path, () => {
      open ??= openStatements(path, timeoutMs)
      const { file, statements } = open
      try {
        file.requireUnchanged()
        return step(statements)
      } catch (error) {
        if (error instanceof UnusableFile) close()
        throw error
      }
    })
  }

  function close(): void {
    open?.file.close()
    open = undefined
  }

  function prune(statements: Statements, now: number): void {
    if (claims % CLAIMS_A_PRUNING === 0) statements.prune.run({ now })
    claims += 1
  }

  function whyNot(statements: Statements, key: string, now: number): 'in_progress' | 'done' {
    const row = statements.look.get({ name, key, now })
    if (row?.isAhead === 1) statements.clamp.run({ name, key, now })
    return row?.isDone === 1 ? 'done' : 'in_progress' // Without a row, the claim ended this moment.
  }

  return {
    claim(key) {
      requireKey(key)
      if (isClosed) throw closed()
      const token = randomUUID()
      const now = clock.now()
      const obstacle = run((statements) => {
        prune(statements, now)
        const isClaimed = statements.claim.run({ name, key, token, now, leaseMs }).changes === 1
        return isClaimed ? undefined : whyNot(statements, key, now)
      })
      if (obstacle !== undefined) return obstacle
      let isOver = false
      return {
        confirm() {
          if (isOver) return
          if (isClosed) throw closed('dedupe_unavailable') // So that the message is not taken for remembered.
          run(({ confirm }) => confirm.run({ name, key, token, now: clock.now(), dedupeWindowMs }))
          isOver = true
        },
        release() {
          if (isOver) return
          if (isClosed) throw closed('dedupe_unavailable')
          run(({ release }) => release.run({ name, key, token }))
          isOver = true
        },
      }
    },
    close() {
      isClosed = true
      close()
    },
  }
}

const TABLES: Tables = {
  name: 'hookline_dedupe',
  version: 1,
  sql: `
    CREATE TABLE hookline_dedupe (
      name TEXT NOT NULL,
      key TEXT NOT NULL,
      token TEXT, -- Of a claim; NULL when the message was handled.
      until INTEGER NOT NULL, -- When the claim or the dedupe window ends, in milliseconds since the epoch.
      for_ms INTEGER NOT NULL, -- How long it lasts from its beginning.
      PRIMARY KEY (name, key)
    ) WITHOUT ROWID;
    CREATE INDEX hookline_dedupe_until ON hookline_dedupe (until)`,
}

function openStatements(path: string, timeoutMs: number) {
  // Not FULL: a power cut loses the last claims and confirms, and their messages are handled again.
  const database = openSqlite(path, (opened) => {
    opened.exec('PRAGMA synchronous = NORMAL')
    inTransaction(opened, () => prepareTables(opened, TABLES))
  })
  database.exec(`PRAGMA busy_timeout = ${timeoutMs}`)
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
      INSERT INTO hookline_dedupe (name, key, token, until, for_ms) VALUES (:name, :key, NULL, :now + :dedupeWindowMs, :dedupeWindowMs)
      ON CONFLICT (name, key) DO UPDATE SET token = NULL, until = excluded.until, for_ms = excluded.for_ms
      WHERE token = :token OR until <= :now`),
    release: database.prepare('DELETE FROM hookline_dedupe WHERE name = :name AND key = :key AND token = :token'),
    prune: database.prepare(`
      DELETE FROM hookline_dedupe WHERE (name, key) IN
        (SELECT name, key FROM hookline_dedupe WHERE until <= :now ORDER BY until LIMIT ${2 * CLAIMS_A_PRUNING})`),
  }
  return { file: watchFile(database, realPathOf(path)), statements }
}

type Statements = ReturnType<typeof openStatements>['statements']

const CLAIMS_A_PRUNING = 32

function attempt<T>(path: string, step: () => T): T {
  try {
    return step()
  } catch (cause) {
    throw new HooklineError('dedupe_unavailable', cannotUse('The dedupe store', path, cause), { cause })
  }
}

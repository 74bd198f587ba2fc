/** The requests that are kept in a file. */

import type { DatabaseSync } from 'node:sqlite'
import { inTransaction, OPENING_MS, UnusableFile } from '../../sqlite/file.ts'
import { UsageError } from '../terminal.ts'
import type { KeptRequest, KeptSummary } from './kept.ts'

/** The oldest requests are dropped past either of these. */
export const MOST_REQUESTS = 10_000
export const MOST_BYTES = 100_000_000

/** How many requests, or bytes, are added before the oldest are dropped. */
const REQUESTS_A_PRUNING = 500
const BYTES_A_PRUNING = 5_000_000

/** Kept requests. Each method throws errors of SQLite. */
export interface Store {
  /** Adds requests, the oldest first, and drops the oldest kept ones when they are too many. */
  add(requests: readonly KeptRequest[]): void
  /** The newest, the oldest of them first. */
  list(most: number, type?: string): readonly KeptSummary[]
  /**
   * Finds one request.
   *
   * @param reference An id, the beginning of one, `last`, or `last~1` for the one before it.
   * @throws UsageError when it names none, or several.
   */
  find(reference: string): KeptRequest
  close(): void
}

/** Uses a database that has the table. */
export function useStore(database: DatabaseSync): Store {
  database.exec(`PRAGMA busy_timeout = ${OPENING_MS}`)
  const insert = database.prepare(`
    INSERT INTO requests (id, type, bytes, summary, body, answer_body) VALUES (?, ?, ?, ?, ?, ?)`)
  const prune = database.prepare(`
    DELETE FROM requests WHERE seq <= (
      SELECT max(seq) FROM (
        SELECT seq, row_number() OVER newest AS count, sum(bytes) OVER newest AS total FROM requests
        WINDOW newest AS (ORDER BY seq DESC)
      ) WHERE count > ${MOST_REQUESTS} OR total > ${MOST_BYTES})`)
  const listed = database.prepare(`
    SELECT summary FROM (SELECT seq, summary FROM requests WHERE :type IS NULL OR type = :type ORDER BY seq DESC LIMIT :most)
    ORDER BY seq`)
  const newest = database.prepare('SELECT * FROM requests ORDER BY seq DESC LIMIT 1 OFFSET ?')
  const named = database.prepare("SELECT * FROM requests WHERE id >= :start AND id < :start || 'g' LIMIT 2")
  let [added, bytes] = [REQUESTS_A_PRUNING, 0] // Prunes at the first requests: an earlier process may have added some.

  return {
    add(requests) {
      inTransaction(database, () => {
        for (const { body, answerBody, ...summary } of requests) {
          const text = JSON.stringify(summary)
          const size = text.length + body.length + answerBody.length
          insert.run(summary.id, summary.message.type ?? null, size, text, body, answerBody)
          added += 1
          bytes += size
        }
        if (added < REQUESTS_A_PRUNING && bytes < BYTES_A_PRUNING) return
        prune.run()
        ;[added, bytes] = [0, 0]
      })
    },
    list: (most, type) => listed.all({ most, type: type ?? null }).map(({ summary }) => readSummary(summary)),
    find(reference) {
      const position = /^last(?:~(\d{1,6}))?$/.exec(reference)
      const start = reference.toLowerCase()
      if (!position && !/^[0-9a-f]{1,12}$/.test(start)) throw unknown('an id has hexadecimal digits')
      const [row, another] = position ? newest.all(Number(position[1] ?? 0)) : named.all({ start })
      if (row === undefined) throw unknown('no such request is kept')
      if (another !== undefined) throw unknown('several ids begin with that')
      return { ...readSummary(row.summary), body: row.body as Uint8Array, answerBody: row.answer_body as Uint8Array }

      function unknown(found: string): UsageError {
        return new UsageError(`'${reference}' must name one kept request: ${found}. See \`hookline list\`.`)
      }
    },
    close() {
      if (database.isOpen) database.close()
    },
  }
}

/** The file may be of strangers: what is printed as it is has the form that `listen` gives it. */
function readSummary(text: unknown): KeptSummary {
  try {
    const summary: KeptSummary = JSON.parse(String(text))
    const { id, receivedAt, size, answer } = summary
    const numbers = [receivedAt, size, answer.durationMs, answer.status ?? 0]
    if (/^[0-9a-f]{12}$/.test(id) && numbers.every(Number.isFinite)) return summary
  } catch {}
  throw new UnusableFile(
    'a request in it is damaged. Got other fields than `listen` writes. Pass the path of a new file.',
  )
}

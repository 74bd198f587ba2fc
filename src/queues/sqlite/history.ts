/** The history: jobs that are complete and were kept, in the order in which they were handled; and notes. */

import type { Replayed } from '../api.ts'
import type { CheckedHistoryPage } from '../store.ts'
import { createGroups } from './groups.ts'
import { bytesOfId, type OpenTables, type QueueRow, textOfId } from './tables.ts'
import type { Dropped, Group } from './thread-messages.ts'

export interface HandledRow {
  readonly id: string
  readonly body: Uint8Array
  readonly kept: Uint8Array
  readonly handledAt: number
  readonly cursor: string
}

interface Place {
  readonly seq: number
  readonly id: Uint8Array
  readonly handledAt: number
  readonly bytes: number
  readonly group: Group
}

export function createHistory({ database }: OpenTables) {
  const groups = createGroups({ database })
  const ROW = `
    SELECT h.seq, c.id, h.handled_at AS handledAt, h.kept, b.body FROM hookline_queue_history AS h
    JOIN hookline_queue_completed AS c ON c.seq = h.seq JOIN hookline_queue_bodies AS b ON b.seq = h.seq
    WHERE h.queue = ?`
  const list = database.prepare(`
    ${ROW} AND (h.handled_at, h.seq) > (?, ?) AND h.handled_at < ? ORDER BY h.handled_at, h.seq LIMIT ?`)
  const find = database.prepare(`${ROW} AND h.handled_at = ? AND h.seq = ?`)
  const findPlace = database.prepare(`
    SELECT h.seq, c.id, h.handled_at AS handledAt, h.bytes, h.in_group AS "group" FROM hookline_queue_ids AS i
    JOIN hookline_queue_completed AS c ON c.seq = i.seq
    JOIN hookline_queue_history AS h ON h.queue = i.queue AND h.handled_at = c.completed_at AND h.seq = c.seq
    WHERE i.queue = ? AND i.id = ?`)
  const oldest = database.prepare(`
    SELECT h.seq, c.id, h.handled_at AS handledAt, h.bytes FROM hookline_queue_history AS h
    JOIN hookline_queue_completed AS c ON c.seq = h.seq WHERE h.queue = ? ORDER BY h.handled_at, h.seq LIMIT ?`)
  const remove = database.prepare(`DELETE FROM hookline_queue_history WHERE queue = ? AND handled_at = ? AND seq = ?`)
  const removeBody = database.prepare('DELETE FROM hookline_queue_bodies WHERE seq = ?')
  const removeCompleted = database.prepare('DELETE FROM hookline_queue_completed WHERE seq = ?')
  const removeId = database.prepare('DELETE FROM hookline_queue_ids WHERE queue = ? AND id = ?')
  const addJob = database.prepare(`
    INSERT INTO hookline_queue_jobs (seq, queue, id, in_group, line, phase, place, due_at, claim_count, retry_state)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?)`)
  const addNote = database.prepare('INSERT OR IGNORE INTO hookline_queue_notes (queue, name, text) VALUES (?, ?, ?)')
  const readNote = database.prepare('SELECT text FROM hookline_queue_notes WHERE queue = ? AND name = ?')

  function placeOf(queue: number, id: string): Place | undefined {
    return findPlace.get(queue, bytesOfId(id)) as Place | undefined
  }

  function take(row: QueueRow, { seq, handledAt, bytes }: Place): void {
    remove.run(row.queue, handledAt, seq)
    row.historyBytes -= bytes
  }

  /** The id stays known as long as `completed` knows it. */
  function forget(row: QueueRow, place: Place, isKnown: boolean): void {
    take(row, place)
    removeBody.run(place.seq)
    if (isKnown) return
    removeCompleted.run(place.seq)
    removeId.run(row.queue, place.id)
  }

  return {
    list(queue: number, { since, until, after, limit }: CheckedHistoryPage): HandledRow[] {
      const [at, seq] = after?.split('.').map(Number) ?? []
      const [from, to] = [since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER]
      const isAfter = at !== undefined && at >= from
      return list.all(queue, isAfter ? at : from, isAfter ? (seq as number) : 0, to, limit).map(toHandled)
    },
    find(queue: number, ids: readonly string[]): HandledRow[] {
      const places = ids.map((id) => placeOf(queue, id)).filter((place) => place !== undefined)
      return places.map(({ handledAt, seq }) => toHandled(find.get(queue, handledAt, seq)))
    },
    /** The job has its number again, under which its body is. */
    replay(row: QueueRow, now: number, jobs: readonly Replayed[], requireRoom: (more: number) => void): string[] {
      const found = jobs.flatMap((job) => {
        const place = placeOf(row.queue, job.id)
        return place !== undefined && cursorOf(place) === job.cursor ? [{ place, ...job }] : []
      })
      requireRoom(found.length)
      for (const { place, retryState } of found) {
        take(row, place)
        removeCompleted.run(place.seq)
        const { seq, id, group } = place
        addJob.run(seq, row.queue, id, group, group, groups.phaseIn(row.queue, group), row.next++, now, retryState)
      }
      row.waiting += found.length
      return found.map(({ id }) => id)
    },
    drop(row: QueueRow, { before, maxBytes, limit, windowStart }: Dropped): number {
      let dropped = 0
      for (const place of oldest.all(row.queue, limit) as unknown as Place[]) {
        if (place.handledAt >= before && row.historyBytes <= maxBytes) break
        forget(row, place, place.handledAt > windowStart)
        dropped += 1
      }
      return dropped
    },
    /** Deletes those of these ids, for good. */
    remove(row: QueueRow, ids: readonly string[]): number {
      const places = ids.map((id) => placeOf(row.queue, id)).filter((place) => place !== undefined)
      for (const place of places) forget(row, place, false)
      return places.length
    },
    note(queue: number, name: string, text: string | undefined): string | undefined {
      if (text !== undefined) addNote.run(queue, name, text)
      return readNote.get(queue, name)?.text as string | undefined
    },
  }
}

function toHandled(row: unknown): HandledRow {
  const { seq, id, handledAt, kept, body } = row as Pick<Place, 'seq' | 'id' | 'handledAt'> &
    Record<'kept' | 'body', Uint8Array>
  return { id: textOfId(id) as string, body, kept, handledAt, cursor: cursorOf({ seq, handledAt }) }
}

function cursorOf({ seq, handledAt }: Pick<Place, 'seq' | 'handledAt'>): string {
  return `${handledAt}.${seq}`
}

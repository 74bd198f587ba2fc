/** The journeys of messages: the rows of one message, joined, from the collector through destinations to receivers. */

import type { Row } from '../wire.ts'

export interface Journey {
  /** That of its oldest row at a destination or a receiver, else of its request. */
  readonly id: number
  /** When it began. */
  readonly at: number
  /** In the order of its way. A request to a collector is in the journey of each of its messages. */
  readonly rows: readonly Row[]
  /** Where it is now: what needs attention, else the end of its way. */
  readonly current: Row
}

const STAGES = { collected: 0, sent: 1, received: 2 } as const
/** A message may fail at one of its ends and be done at another: the first of these is what it shows. */
const ATTENTION = ['dead', 'waiting', 'failed', 'refused'] as const

/**
 * Joins rows. A copy of a replay is by itself. A request to a collector is in the list by itself when it has no other row, or when some of its calls were refused.
 *
 * @param before Journeys of before, by their ids: one that has not changed stays the same object.
 */
export function joinRows(rows: readonly Row[], before: ReadonlyMap<number, Journey> = new Map()): readonly Journey[] {
  const requests = rows.filter(({ kind }) => kind === 'collected')
  const ends = rows.filter(({ kind }) => kind !== 'collected')
  const requestsOf = new Map<string, Row[]>()
  for (const request of requests) {
    for (const id of new Set(request.messageIds)) {
      const known = requestsOf.get(id)
      if (known === undefined) requestsOf.set(id, [request])
      else known.push(request)
    }
  }
  const joined = new Set<Row>()
  const journeys = [...Map.groupBy(ends, keyOf)].map(([messageId, own]) => {
    const from = requestsOf.get(messageId as string) ?? []
    for (const request of from) if (request.refusedCalls === undefined) joined.add(request)
    return journeyOf(
      [...from, ...own],
      own.reduce((least, { id }) => Math.min(least, id), Number.POSITIVE_INFINITY),
    )
  })
  const alone = requests.filter((request) => !joined.has(request)).map((request) => journeyOf([request]))
  const all = [...journeys, ...alone].map((journey) => {
    const known = before.get(journey.id)
    const isSame =
      known?.rows.length === journey.rows.length && known.rows.every((row, index) => row === journey.rows[index])
    return isSame ? known : journey
  })
  return all.sort((one, other) => other.at - one.at || other.id - one.id)
}

function keyOf({ id, messageIds = [], replayId }: Row): string | number {
  return (replayId === undefined && messageIds[0]) || id
}

/** The journey of a row by itself, or of several. */
export function journeyOf(rows: readonly Row[], id: number = rows[0]?.id ?? 0): Journey {
  const sorted = rows.toSorted(
    (one, other) => STAGES[one.kind] - STAGES[other.kind] || compare(one.part, other.part) || one.id - other.id,
  )
  const needing = ATTENTION.map((state) => sorted.findLast((row) => row.state === state)).find(
    (row) => row !== undefined,
  )
  const last = sorted.at(-1) as Row
  const handled = sorted.findLast(({ kind, state }) => kind === last.kind && state === 'done')
  return {
    id,
    at: sorted.reduce((least, { at }) => Math.min(least, at), Number.POSITIVE_INFINITY),
    rows: sorted,
    current: needing ?? handled ?? last,
  }
}

/** The journey in which a row is, as that row shows it; of a request that is in those of its messages, the row by itself. */
export function findJourney(journeys: readonly Journey[], id: number): Journey | undefined {
  const found = journeys.find(({ rows }) => rows.some((row) => row.id === id))
  const row = found?.rows.find((each) => each.id === id)
  if (found === undefined || row === undefined || found.id === id) return found
  return row.kind === 'collected' ? journeyOf([row]) : { ...found, current: row }
}

/** What the message says of itself: a request to a collector may hold more than one. */
export function describe(rows: readonly Row[]): Pick<Row, 'type' | 'name' | 'user'> {
  return rows.findLast(({ type }) => type !== undefined) ?? {}
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

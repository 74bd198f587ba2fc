/** Joins the rows of one message into its journey, from the collector through destinations to receivers. */

import type { Row } from '../wire.ts'

export interface Journey {
  /** The lowest id of the rows at destinations and receivers; if there are none, the id of the request to the collector. */
  readonly id: number
  /** The time at which the journey began. */
  readonly at: number
  /** The rows in the order of the journey. A request to a collector is in the journey of each of its messages. */
  readonly rows: readonly Row[]
  /** The row that most needs attention. If no row does, the last row of the last stage, preferably one that is done. */
  readonly current: Row
}

const STAGES = { collected: 0, sent: 1, received: 2 } as const
/** The states that need attention, most urgent first. A message may fail at one part and succeed at another. */
const ATTENTION = ['dead', 'waiting', 'failed', 'refused'] as const

/**
 * Joins rows into journeys. A copy that a replay created has its own journey. So does a request to a collector if it has refused calls,
 * or if none of its messages has a row at another part.
 *
 * @param before The previous journeys, keyed by id. An unchanged journey stays the same object.
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

/** Creates a journey from its rows. */
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

/** Finds the journey that shows a row. A request that is part of other journeys is shown alone. */
export function findJourney(journeys: readonly Journey[], id: number): Journey | undefined {
  const found = journeys.find(({ rows }) => rows.some((row) => row.id === id))
  const row = found?.rows.find((each) => each.id === id)
  if (found === undefined || row === undefined || found.id === id) return found
  return row.kind === 'collected' ? journeyOf([row]) : { ...found, current: row }
}

/** Returns the fields that identify the message. Reads the last row, because the first may be a collector's request with many messages. */
export function describe(rows: readonly Row[]): Pick<Row, 'type' | 'name' | 'user'> {
  return rows.findLast(({ type }) => type !== undefined) ?? {}
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

/** The SQL of a queue, prepared: each statement as a function with the shape of what it takes and brings. */

import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { Hold } from './sqlite-commands.ts'

type Row = Readonly<Record<string, unknown>>

/** Prepares the statements of a queue, and makes it known in the file. */
export function prepare(database: DatabaseSync, name: string) {
  const queue = enter(database, name)

  /** `:queue` is filled in wherever it stands. */
  function run(text: string): (values?: Record<string, SQLInputValue>) => number {
    const statement = database.prepare(text)
    return (values = {}) => Number(statement.run({ queue, ...values }).changes)
  }

  function get(text: string): (values?: Record<string, SQLInputValue>) => Row | undefined {
    const statement = database.prepare(text)
    return (values = {}) => statement.get({ queue, ...values })
  }

  function all(text: string): (values?: Record<string, SQLInputValue>) => readonly Row[] {
    const statement = database.prepare(text)
    return (values = {}) => statement.all({ queue, ...values })
  }

  const jobs = 'hookline_jobs'
  const here = 'queue = :queue AND status = :status'
  /** The hand-out that somebody speaks of, unless its lease is over and it is somebody else's. */
  const held = 'row = :row AND queue = :queue AND status = 2 AND owner = :owner AND deliveries = :deliveries'
  const anew = 'deliveries = 0, owner = NULL, first_at = NULL, died_at = NULL, state = NULL, reason = NULL'

  const stored = get('SELECT waiting, active, dead FROM hookline_queues WHERE number = :queue')
  const isKnown = get(`
    SELECT EXISTS (SELECT 1 FROM ${jobs} WHERE queue = :queue AND id = :id)
      OR EXISTS (SELECT 1 FROM hookline_done WHERE queue = :queue AND id = :id AND until > :now) AS known`)
  const insert = run(`
    INSERT INTO ${jobs} (queue, status, place, due_at, id, body)
    SELECT :queue, :status, :place, :dueAt, :id, :body
    WHERE NOT EXISTS (SELECT 1 FROM hookline_done WHERE queue = :queue AND id = :id AND until > :now)
    ON CONFLICT (queue, id) DO NOTHING`)
  const exists = get(`SELECT 1 AS one FROM ${jobs} WHERE ${here} LIMIT 1`)
  const firstPlace = get(`SELECT place FROM ${jobs} WHERE ${here} ORDER BY place LIMIT 1`)
  const lastPlace = get(`SELECT place FROM ${jobs} WHERE ${here} ORDER BY place DESC LIMIT 1`)
  const firstDueAt = get(`SELECT due_at FROM ${jobs} WHERE queue = :queue AND status = 0 ORDER BY place LIMIT 1`)
  const ripe = all(`SELECT row FROM ${jobs} WHERE ${here} AND place <= :now ORDER BY place LIMIT :limit`)
  const line = run(`UPDATE ${jobs} SET status = 0, place = :place WHERE row = :row AND queue = :queue`)
  const first = all(`
    SELECT row, id, body, state, first_at, deliveries FROM ${jobs}
    WHERE queue = :queue AND status = 0 ORDER BY place LIMIT :limit`)
  const take = run(`
    UPDATE ${jobs} SET status = 2, place = :until, lease_ms = :leaseMs, owner = :owner, deliveries = :deliveries,
      first_at = coalesce(first_at, :now) WHERE row = :row AND queue = :queue`)
  const mend = run(
    `UPDATE ${jobs} SET id = :id, body = :body, deliveries = :deliveries WHERE row = :row AND queue = :queue`,
  )
  const remove = get(`DELETE FROM ${jobs} WHERE ${held} RETURNING id`)
  const remember = run('INSERT OR REPLACE INTO hookline_done (queue, until, id) VALUES (:queue, :until, :id)')
  const forget = database.prepare(
    'DELETE FROM hookline_done WHERE row IN (SELECT row FROM hookline_done ORDER BY row LIMIT :limit) AND until <= :now',
  )
  const retry = run(`
    UPDATE ${jobs} SET status = :status, place = :place, due_at = :dueAt, state = :state, owner = NULL WHERE ${held}`)
  const bury = run(`
    UPDATE ${jobs} SET status = 3, place = :place, reason = :reason, state = :state, died_at = :now, owner = NULL
    WHERE ${held}`)
  const release = run(`UPDATE ${jobs} SET status = 0, place = :place, due_at = :now, owner = NULL WHERE ${held}`)
  const renew = run(`UPDATE ${jobs} SET place = :until WHERE queue = :queue AND status = 2 AND owner = :owner`)
  const clamp = run(`
    UPDATE ${jobs} SET place = :now + lease_ms WHERE queue = :queue AND status = 2 AND place > :now + lease_ms`)
  const deadPlace = get(`SELECT place FROM ${jobs} WHERE queue = :queue AND id = :id AND status = 3`)
  const deadAfter = all(`
    SELECT id, body, state, reason, died_at FROM ${jobs}
    WHERE queue = :queue AND status = 3 AND place > :place ORDER BY place LIMIT :limit`)
  const redrive = run(`
    UPDATE ${jobs} SET status = 0, place = :place, due_at = :now, ${anew} WHERE queue = :queue AND id = :id AND status = 3`)
  const redriveAll = run(`
    UPDATE ${jobs} SET status = 0, place = place + :place, due_at = :now, ${anew} WHERE queue = :queue AND status = 3`)
  const drop = run(`DELETE FROM ${jobs} WHERE queue = :queue AND id = :id AND status = 3`)
  const dropAll = run(`DELETE FROM ${jobs} WHERE queue = :queue AND status = 3`)
  const count = run(`
    UPDATE hookline_queues SET waiting = waiting + :waiting, active = active + :active, dead = dead + :dead
    WHERE number = :queue`)

  return {
    stored: () => stored() as { readonly waiting: number; readonly active: number; readonly dead: number },
    isKnown: (id: Uint8Array, now: number) => isKnown({ id, now })?.known === 1,
    insert,
    exists: (status: number) => exists({ status }) !== undefined,
    firstPlace: (status: number) => numberIn(firstPlace({ status }), 'place'),
    lastPlace: (status: number) => numberIn(lastPlace({ status }), 'place') ?? 0,
    firstDueAt: () => numberIn(firstDueAt(), 'due_at'),
    ripe: (status: number, now: number, limit: number) => ripe({ status, now, limit }).map(({ row }) => Number(row)),
    line: (row: number, place: number) => line({ row, place }),
    first: (limit: number) => first({ limit }),
    take,
    mend,
    remove: (hold: Hold) => remove({ ...hold })?.id as Uint8Array | undefined,
    remember: (id: Uint8Array, until: number) => remember({ id, until }),
    forget: (now: number, limit: number) => forget.run({ now, limit }),
    retry: (hold: Hold, values: Record<string, SQLInputValue>) => retry({ ...hold, ...values }),
    bury: (hold: Hold, values: Record<string, SQLInputValue>) => bury({ ...hold, ...values }),
    release: (hold: Hold, values: Record<string, SQLInputValue>) => release({ ...hold, ...values }),
    renew: (owner: number, until: number) => renew({ owner, until }),
    clamp: (now: number) => clamp({ now }),
    deadPlace: (id: Uint8Array) => numberIn(deadPlace({ id }), 'place'),
    deadAfter: (place: number, limit: number) => deadAfter({ place, limit }),
    redrive: (id: Uint8Array, place: number, now: number) => redrive({ id, place, now }),
    redriveAll: (place: number, now: number) => redriveAll({ place, now }),
    drop: (id: Uint8Array) => drop({ id }),
    dropAll: () => dropAll(),
    count,
  }
}

/** The number of a queue in its file. How many jobs there are is counted anew: somebody may have edited the file. */
function enter(database: DatabaseSync, name: string): number {
  database.exec('BEGIN IMMEDIATE')
  database.prepare('INSERT INTO hookline_queues (name) VALUES (?) ON CONFLICT (name) DO NOTHING').run(name)
  const number = Number(database.prepare('SELECT number FROM hookline_queues WHERE name = ?').get(name)?.number)
  const counted = (statuses: string): string =>
    `(SELECT count(*) FROM hookline_jobs WHERE queue = number AND status IN (${statuses}))`
  database
    .prepare(
      `UPDATE hookline_queues SET waiting = ${counted('0, 1')}, active = ${counted('2')}, dead = ${counted('3')} WHERE number = ?`,
    )
    .run(number)
  database.exec('COMMIT')
  return number
}

function numberIn(row: Row | undefined, column: string): number | undefined {
  const value = row?.[column]
  return typeof value === 'number' ? value : undefined
}

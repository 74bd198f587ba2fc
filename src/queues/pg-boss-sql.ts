/**
 * The statements that pg-boss has no call for, on its table of jobs. One row a job, under its id:
 *
 * - `created`, `retry`: waits until `start_after`; `active`: handed out, in the group by whose index those are counted.
 * - `completed`: done; only the id is left.
 * - `failed`: dead; `singleton_on` is when it died, and its index the list of the dead.
 */

/** The statements, for one schema. `$1` is the name of the queue. */
export interface Statements {
  readonly next: string
  readonly counts: string
  readonly done: string
  readonly retry: string
  readonly bury: string
  readonly release: string
  readonly lapsed: string
  readonly forget: string
  readonly dead: string
  redrive(isAll: boolean): string
  drop(isAll: boolean): string
}

/** In which pg-boss has an index of what is handed out. */
export const GROUP = 'hookline'

/** Writes them. */
export function writeStatements(schema: string): Statements {
  const jobs = `${schema}.job`
  const now = `${schema}.job_now()`
  const waits = `name = $1 AND state < 'active' AND NOT blocked`
  const isDead = `name = $1 AND state = 'failed' AND state <> 'cancelled' AND singleton_on IS NOT NULL`
  const some = (isAll: boolean) => `${isDead} ${isAll ? '' : 'AND id = ANY($2::uuid[])'}`
  /** A worker whose lease is over changes nothing: each hand-out has a number of its own. */
  const isHeld = `name = $1 AND id = ANY($2::uuid[]) AND state = 'active' AND (id::text || ':' || retry_count) = ANY($3::text[])`
  const isHeldBy = `j.name = $1 AND j.id = x.id AND j.state = 'active' AND j.retry_count = x.attempt`
  const oldest = `SELECT start_after FROM ${jobs} WHERE ${waits} ORDER BY priority DESC, created_on`
  return {
    // The first few: what was retried may come due before what goes before it.
    next: `SELECT (extract(epoch FROM min(start_after) - ${now}) * 1000)::float8 AS "inMs" FROM (${oldest} LIMIT 20) x`,
    counts: `SELECT
      (SELECT count(*) FROM ${jobs} WHERE ${waits})::float8 AS waiting,
      (SELECT count(*) FROM ${jobs} WHERE name = $1 AND state = 'active' AND group_id IS NOT NULL)::float8 AS active,
      (SELECT count(*) FROM ${jobs} WHERE ${isDead})::float8 AS dead,
      (SELECT (extract(epoch FROM min(start_after)) * 1000)::float8
        FROM (${oldest} LIMIT 20) x WHERE start_after <= ${now}) AS "oldestDueAt"`,
    done: `UPDATE ${jobs} SET state = 'completed', completed_on = ${now}, deletion_seconds = $4, data = NULL, output = NULL
      WHERE ${isHeld}`,
    retry: `UPDATE ${jobs} j SET state = 'retry', start_after = ${now} + x.ms * interval '1 millisecond',
      priority = x.priority, heartbeat_on = NULL, data = (j.data - 'state') || x.data
      FROM json_to_recordset($2::text::json) AS x (id uuid, attempt int, ms float8, priority int, data jsonb)
      WHERE ${isHeldBy}`,
    bury: `UPDATE ${jobs} j SET state = 'failed', completed_on = ${now}, deletion_seconds = 0, heartbeat_on = NULL,
      singleton_on = x.died::timestamp, singleton_key = x.id::text,
      data = CASE WHEN x.whole THEN x.data ELSE (j.data - 'state') || x.data END
      FROM json_to_recordset($2::text::json) AS x (id uuid, attempt int, died text, whole boolean, data jsonb)
      WHERE ${isHeldBy}`,
    // It came due when it did: the first time of what lapsed is reckoned from that.
    release: `UPDATE ${jobs} j SET state = 'retry', heartbeat_on = NULL, data = j.data || x.data
      FROM json_to_recordset($2::text::json) AS x (id uuid, attempt int, data jsonb)
      WHERE ${isHeldBy}`,
    // pg-boss keeps no first time; what lapsed did so a lease after it was handed out, and a little.
    lapsed: `UPDATE ${jobs} SET data = data || jsonb_build_object('firstAt', floor(1000 * extract(epoch FROM
        greatest(created_on, start_after - COALESCE(heartbeat_seconds, 0) * interval '1 second'))))
      WHERE ${isHeld} RETURNING id::text, (data->>'firstAt')::float8 AS "firstAt"`,
    forget: `DELETE FROM ${jobs} WHERE name = $1 AND id = ANY($2::uuid[]) AND state = 'completed'
      AND completed_on + deletion_seconds * interval '1 second' <= ${now} RETURNING id::text`,
    dead: `SELECT id::text, data, floor(1000 * extract(epoch FROM singleton_on))::float8 AS "diedAt"
      FROM ${jobs} WHERE ${isDead} AND (singleton_on, COALESCE(singleton_key, '')) > (
        COALESCE((SELECT singleton_on FROM ${jobs} WHERE ${isDead} AND id = $2), '-infinity'),
        COALESCE((SELECT singleton_key FROM ${jobs} WHERE ${isDead} AND id = $2), ''))
      ORDER BY singleton_on, COALESCE(singleton_key, '') LIMIT $3`,
    redrive: (isAll) => {
      const [at, priority, seconds] = isAll ? ['$2', '$3', '$4'] : ['$3', '$4', '$5']
      return `UPDATE ${jobs} SET state = 'created', start_after = ${now}, created_on = ${now}, completed_on = NULL,
        singleton_on = NULL, singleton_key = NULL, priority = ${priority}, deletion_seconds = ${seconds},
        data = (data - '{state,reason,firstAt}'::text[])
          || jsonb_build_object('before', retry_count + 1, 'at', ${at}::float8)
        WHERE ${some(isAll)} RETURNING 1`
    },
    drop: (isAll) => `DELETE FROM ${jobs} WHERE ${some(isAll)} RETURNING 1`,
  }
}

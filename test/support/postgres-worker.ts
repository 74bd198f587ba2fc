/** A process that takes jobs of a queue on PostgreSQL and never ends them: `node postgres-worker.ts <options as JSON>`. */

import { pgBossQueue } from '../../src/queues/pg-boss.ts'

pgBossQueue(JSON.parse(process.argv[2] ?? '')).work(
  (job) => {
    process.stdout.write(`${job.firstAt}\n`)
    return new Promise(() => {})
  },
  { concurrency: 10 },
)

/**
 * A process that claims jobs of a queue on PostgreSQL and never completes them: `node postgres-worker.ts <options as JSON>`.
 * It prints when a job was claimed first. A line on its input closes the queue, and then nothing keeps the process alive.
 */

import { pgBossQueue } from '../../src/queues-pg-boss.ts'

const queue = pgBossQueue({ ...JSON.parse(process.argv[2] ?? ''), onError: () => {} })
queue.work(
  (job) => {
    process.stdout.write(`${job.firstAt.getTime()}\n`)
    return new Promise(() => {})
  },
  { concurrency: 10 },
)
process.stdin.once('data', async () => {
  process.stdin.destroy()
  const start = performance.now()
  await queue.close({ graceMs: 300 })
  process.stdout.write(`closed after ${Math.round(performance.now() - start)}\n`)
})

/**
 * A process that uses a queue in a SQLite file: opens it, says so, and waits to be told to begin. Prints a line for each
 * thing that happened.
 */

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { sqliteQueue } from '../../src/queues/sqlite.ts'

const [, , path = '', what = '', count = '0'] = process.argv
const queue = sqliteQueue({
  path,
  pollMs: 20,
  busyTimeoutMs: 10_000,
  onError: (error) => console.log('error', error.code),
})
console.log('open')
await once(process.stdin, 'data')

async function push(): Promise<void> {
  const id = randomUUID()
  const body = Buffer.alloc(1024, id)
  await queue.push([{ id, body }]).then(
    () => console.log('pushed', id),
    (error) => console.log('failed', error.code),
  )
}

if (what === 'push') for (let index = 0; index < Number(count); index += 1) await push()
if (what === 'hold' || what === 'work') {
  const handle = async (job: { readonly id: string }) => {
    console.log('got', job.id)
    return what === 'work' ? { done: true as const } : new Promise<never>(() => {})
  }
  queue.work(handle, { concurrency: 20 })
}
if (what === 'close') {
  await push()
  queue.work(async () => ({ done: true }), { concurrency: 20 })
  await queue.drain()
  process.stdin.destroy()
  await queue.close({ graceMs: 0 })
  console.log('closed')
} else {
  console.log('done')
}

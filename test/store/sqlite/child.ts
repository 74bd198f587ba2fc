/**
 * A process that uses a queue in a SQLite file: opens it, prints `open`, and begins when a line comes in. Prints a line for
 * each thing that happened.
 */

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'

const [, , path = '', what = '', count = '0'] = process.argv
const queue = sqliteQueue({
  path,
  pollMs: 20,
  timeoutMs: 10_000,
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

async function handle(job: { readonly id: string }): Promise<{ readonly complete: true }> {
  console.log('got', job.id)
  if (what === 'leave') return new Promise(() => {})
  return { complete: true }
}

if (what === 'push') for (let index = 0; index < Number(count); index += 1) await push()
if (what === 'work') queue.work(handle, { concurrency: 20 })
if (what === 'close') {
  await push()
  queue.work(handle, { concurrency: 20 })
  await queue.drain()
  process.stdin.destroy()
  await queue.close({ graceMs: 0 })
  console.log('closed')
} else if (what === 'leave') {
  await push()
  queue.work(handle, { concurrency: 1 })
  await once(process.stdin, 'data')
  process.stdin.destroy()
  void push()
  const began = performance.now()
  await queue.close({ graceMs: 200 })
  console.log('closed after', performance.now() - began)
} else if (what === 'forget') {
  await push()
  const { deleted } = await queue.forget(() => true)
  process.stdin.destroy()
  await queue.close({ graceMs: 0 })
  console.log('forgotten', deleted)
} else if (what === 'idle') {
  await push()
  process.stdin.destroy() // Nothing else keeps this process alive.
} else {
  console.log('done')
}

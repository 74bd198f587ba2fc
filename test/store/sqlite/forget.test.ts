/** What is left of a user in the files of a queue that has forgotten them. */

import { closeSync, openSync, readSync, statSync, writeFileSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { afterAll, describe, expect, it } from 'vitest'
import type { Queue, StoredJob } from '../../../src/store/queue-types.ts'
import { until } from '../../support/until.ts'
import { bodiesIn, done, jobOf, openAs, setUp, work } from './set-up.ts'

const bodyOf = (name: string, size: number) => `${name}-secret `.repeat(size)
const isOfAda = ({ body }: StoredJob) => Buffer.from(body).includes('ada-secret')

/** The file descriptors of files that were read: to close one drops all locks of this process on its file, also those of the queue. */
const opened = new Map<number, number>()
afterAll(() => {
  for (const file of opened.values()) closeSync(file)
})

function read(path: string): Buffer {
  const { ino, size } = statSync(path)
  const file = opened.get(ino) ?? openSync(path, 'r')
  opened.set(ino, file)
  const bytes = Buffer.alloc(size)
  return bytes.subarray(0, readSync(file, bytes, 0, size, 0))
}

/** Counts how often a user is in the file, and in its WAL. */
function found(path: string, name: string): number[] {
  return [path, `${path}-wal`].map((file) => read(file).toString('latin1').split(`${name}-secret`).length - 1)
}

/** Leaves jobs of both users that are done, dead, retried and due. */
async function fill(queue: Queue, drained: (queue: Queue) => Promise<void>) {
  const bodies = ['ada', 'bob'].flatMap((name) => [5, 2_000].map((size) => bodyOf(name, size)))
  let phase: 'done' | 'dead' | 'later' = 'done'
  work(queue, ({ body }) => {
    const [reason, retryState] = [`${Buffer.from(body)}`, Buffer.from(`why: ${Buffer.from(body)}`)]
    if (phase === 'done') return done
    return phase === 'dead' ? { deadLetter: reason, retryState } : { retryAt: new Date(8.64e15), retryState }
  })
  for (const next of ['done', 'dead', 'later'] as const) {
    phase = next
    await queue.push(bodies.map((body) => jobOf(body)))
    await drained(queue)
  }
  void queue.pause()
  await queue.push(bodies.map((body) => jobOf(body)))
}

/** Another user of the file, who reads until the function is called. */
function startReading(connect: () => DatabaseSync): () => void {
  const reader = connect()
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM hookline_queue_jobs').get()
  return () => reader.exec('COMMIT')
}

describe('a user who is forgotten', () => {
  it('is in no byte of the file nor of its log any more, while the queue is open', async () => {
    const { path, open, drained } = setUp()
    const queue = open()
    await fill(queue, drained)
    expect(found(path, 'ada').reduce((sum, count) => sum + count)).toBeGreaterThan(10_000)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 6, active: 0 })
    expect(found(path, 'ada')).toEqual([0, 0])
    expect(found(path, 'bob')[0]).toBeGreaterThan(6_000)
  })

  it('is gone also when all jobs were complete, and when dead letters are dropped', async () => {
    const { path, open, drained } = setUp()
    const queue = open()
    let isDone = true
    work(queue, () => (isDone ? done : { deadLetter: 'no' }))
    await queue.push([jobOf(bodyOf('ada', 5))])
    await drained(queue)
    expect(found(path, 'ada')[1]).toBeGreaterThan(0)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 0, active: 0 })
    expect(found(path, 'ada')).toEqual([0, 0])
    isDone = false
    await queue.push([jobOf(bodyOf('bob', 5))])
    await drained(queue)
    expect(await queue.drop({ reason: 'no' })).toBe(1)
    expect(found(path, 'bob')).toEqual([0, 0])
  })

  it('stays in the log for as long as another user of the file reads, and not for longer', async () => {
    const { path, open, connect } = setUp()
    const queue = open({ timeoutMs: 60_000 })
    await queue.push([jobOf(bodyOf('ada', 5)), jobOf(bodyOf('bob', 5))])
    const endReading = startReading(connect)
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
    expect(found(path, 'ada')[1]).toBeGreaterThan(0)
    endReading()
    await until(() => found(path, 'ada')[1] === 0)
    expect(found(path, 'ada')).toEqual([0, 0])
  })

  it('is gone when the queue is closed at once, and when an observer forgot them, though another user of the file read', async () => {
    for (const observe of [false, true]) {
      const { path, open, connect } = setUp()
      const first = open()
      await first.push([jobOf(bodyOf('ada', 5)), jobOf(bodyOf('bob', 5))])
      const endReading = startReading(connect)
      await first.close()
      const queue = open({ timeoutMs: 10_000, observe })
      const forgotten = queue.forget(isOfAda)
      await until(() => bodiesIn(path).length === 1)
      if (!observe) await forgotten
      endReading()
      expect(await forgotten).toEqual({ deleted: 1, active: 0 })
      await queue.close()
      expect(found(path, 'ada')).toEqual([0, 0])
    }
  })

  it('delays nobody while another user of the file reads', async () => {
    const { open, connect, drained } = setUp()
    const queue = open({ timeoutMs: 60_000 })
    work(queue, () => ({ deadLetter: 'no' }), 100)
    await queue.push(Array.from({ length: 600 }, () => jobOf('letter')))
    await drained(queue)
    startReading(connect)
    const dropped = queue.drop('all')
    await open({ name: 'another' }).push([jobOf()])
    expect(await dropped).toBe(600) // A wait in this thread would take the 60 seconds.
  })

  it('is found among more jobs than one step looks at', async () => {
    const { open } = setUp()
    const queue = open()
    const bodies = Array.from({ length: 5_500 }, (_, index) => (index % 1_000 === 999 ? 'ada-secret' : 'bob-secret'))
    await queue.push(bodies.map((body) => jobOf(body)))
    expect(await queue.forget(isOfAda)).toEqual({ deleted: 5, active: 0 })
  })

  it('whose jobs a process had when it died is forgotten where no process works', async () => {
    const { path, open } = setUp()
    const dead = openAs(path, 0xabc)
    dead.push('ada-secret')
    dead.claim()
    dead.close()
    writeFileSync(`${path}-owner-abc`, '')
    expect(await open().forget(isOfAda)).toEqual({ deleted: 1, active: 0 })
  })
})

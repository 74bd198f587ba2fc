import fs, { rmSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { lockOwner } from '../../../src/queues/sqlite/owners.ts'
import type { Claims, Finish, Reply, Request } from '../../../src/queues/sqlite/thread-messages.ts'
import { type OpenFile, openForRequests } from '../../../src/queues/sqlite/thread-requests.ts'
import { needs } from '../../support/needs.ts'
import { HOURS_3, hurryTime, newFile, requestsOf, sideFilesOf } from './set-up.ts'

const { push, claim, counts, queue } = requestsOf()

function open(path: string, owner: number): OpenFile {
  const file = openForRequests(path, owner)
  onTestFinished(() => file.close())
  return file
}

function jobsOf(replies: readonly Reply[]) {
  return (replies[0] as { readonly value: Claims }).value.jobs
}

function finish(job: { readonly seq: number; readonly claim: number }, outcome: Finish['outcome']) {
  const { seq, claim } = job
  const fields = { retryAt: 0, reason: undefined, retryState: undefined }
  return { kind: 'finish', queue, now: 0, seq, claim, group: null, outcome, ...fields } satisfies Request
}

describe('an owner', () => {
  it('that lives keeps its claims, whatever the clock says', () => {
    const path = newFile()
    const lock = lockOwner(path)
    onTestFinished(lock.release)
    const [living, other] = [open(path, lock.owner), open(path, 5)]
    living.run([push('a')])
    expect(jobsOf(living.run([claim(1)]))).toHaveLength(1)
    hurryTime()
    for (const now of [0, HOURS_3, 2 * HOURS_3]) expect(jobsOf(other.run([claim(1, { now })]))).toEqual([])
    expect(other.run([counts()])).toMatchObject([{ value: { waiting: 0, active: 1 } }])
  })

  it.each([
    ['whose lock is free', (file: string) => writeFileSync(file, '')],
    ['whose side file is missing', () => {}],
    ['that left a side file with something in it', leaveTable],
  ])('%s is dead: its jobs are due again at once, in their order, and its claims count', (_how, leave) => {
    const path = newFile()
    const dead = open(path, 0xabc)
    dead.run([push('a', 'b', 'c')])
    expect(jobsOf(dead.run([claim(1, { limit: 2 })]))).toMatchObject([{ claimCount: 1 }, { claimCount: 1 }])
    leave(`${path}-owner-abc`)
    const other = open(path, 5)
    const jobs = jobsOf(other.run([claim(1, { limit: 3, now: 7 })]))
    expect(jobs.map(({ body }) => `${Buffer.from(body)}`)).toEqual(['a', 'b', 'c'])
    expect(jobs).toMatchObject([
      { claimCount: 2, firstAt: 0 },
      { claimCount: 2, firstAt: 0 },
      { claimCount: 1, firstAt: 7 },
    ])
    expect(other.run([counts()])).toMatchObject([{ value: { waiting: 0, active: 3 } }])
    expect(sideFilesOf(path)).toEqual([])
  })

  it('that dies is found by the others within half a second, also when nothing else is due', () => {
    const path = newFile()
    const lock = lockOwner(path)
    const [dying, other] = [open(path, lock.owner), open(path, 5)]
    dying.run([push('a')])
    dying.run([claim(1)])
    let now = 1_000_000
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => spy.mockRestore())
    expect(jobsOf(other.run([claim(1)]))).toEqual([])
    lock.release()
    now += 499
    expect(jobsOf(other.run([claim(2)]))).toEqual([])
    now += 1
    expect(jobsOf(other.run([claim(3)]))).toMatchObject([{ claimCount: 2 }])
  })

  it('that died with claims in several queues loses all of them', () => {
    const path = newFile()
    const users = { ...queue, name: 'users' }
    const dead = open(path, 0xabc)
    dead.run([push('a'), { ...push('b'), queue: users }])
    dead.run([claim(1), { ...claim(2), queue: users }])
    const other = open(path, 5)
    other.run([claim(1)])
    expect(other.run([counts(), { ...counts(), queue: users }])).toMatchObject([
      { value: { waiting: 0, active: 1 } },
      { value: { waiting: 1, active: 0 } },
    ])
  })

  it('whose side file cannot be looked into counts as alive', () => {
    const path = newFile()
    const living = open(path, 0xabc)
    living.run([push('a')])
    living.run([claim(1)])
    fs.mkdirSync(`${path}-owner-abc`)
    expect(jobsOf(open(path, 5).run([claim(1)]))).toEqual([])
  })

  it('that ended what was taken from it changes nothing', () => {
    const path = newFile()
    const [first, second] = [open(path, 0xabc), open(path, 5)]
    first.run([push('a')])
    const [job] = jobsOf(first.run([claim(1)]))
    const [again] = jobsOf(second.run([claim(1)]))
    if (job === undefined || again === undefined) throw new Error('both claimed it')
    for (const outcome of ['complete', 'retry', 'deadLetter'] as const) {
      first.run([finish(job, outcome)])
      expect(first.run([counts()])).toMatchObject([{ value: { waiting: 0, active: 1, deadLetters: 0 } }])
    }
    first.run([{ kind: 'release', queue, claims: [job], wereHandled: true }])
    expect(first.run([counts()])).toMatchObject([{ value: { waiting: 0, active: 1, deadLetters: 0 } }])
    second.run([finish(again, 'complete')])
    expect(first.run([counts()])).toMatchObject([{ value: { waiting: 0, active: 0, deadLetters: 0 } }])
  })
})

describe('a claim whose answer was lost', () => {
  it('is undone: its jobs wait as if it had never been made, and other claims stay', () => {
    const file = open(newFile(), 5)
    file.run([push('a', 'b')])
    file.run([claim(1)])
    file.run([claim(2)])
    file.run([{ kind: 'undoClaim', queue, claim: 2 }])
    expect(file.run([counts()])).toMatchObject([{ value: { waiting: 1, active: 1 } }])
    expect(jobsOf(file.run([claim(3, { limit: 2, now: 7 })]))).toMatchObject([{ claimCount: 1, firstAt: 7 }])
  })
})

describe('side files', () => {
  it('of processes that died without a claim are removed at opening, no others', () => {
    const path = newFile()
    const lock = lockOwner(path)
    onTestFinished(lock.release)
    for (const name of ['-owner-abc', '-owner-5', '-owner-of-mine', '-owner-']) writeFileSync(`${path}${name}`, '')
    open(path, 5)
    const left = ['jobs.db-owner-', 'jobs.db-owner-5', 'jobs.db-owner-of-mine']
    expect(sideFilesOf(path).sort()).toEqual([...left, `jobs.db-owner-${lock.owner.toString(16)}`].sort())
  })

  it('that another process removes before they are locked: another one is taken', needs('POSIX'), () => {
    const path = newFile()
    const { exec } = DatabaseSync.prototype
    const spy = vi.spyOn(DatabaseSync.prototype, 'exec').mockImplementationOnce(function (this: DatabaseSync, sql) {
      for (const name of sideFilesOf(path)) rmSync(`${path}${name.slice('jobs.db'.length)}`)
      exec.call(this, sql)
    })
    onTestFinished(() => spy.mockRestore())
    const lock = lockOwner(path)
    expect(sideFilesOf(path)).toEqual([`jobs.db-owner-${lock.owner.toString(16)}`])
    lock.release()
    expect(sideFilesOf(path)).toEqual([])
  })
})

function leaveTable(file: string): void {
  const database = new DatabaseSync(file)
  database.exec('CREATE TABLE a (b)')
  database.close()
}

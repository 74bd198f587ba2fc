import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { lockOwner } from '../../../src/store/sqlite/locks.ts'
import type { SqliteClaim } from '../../../src/store/sqlite/sqlite-store.ts'
import { bodiesOf, HOURS_3, hurryTime, newFile, openAs, sideFilesOf } from './set-up.ts'

describe('an owner', () => {
  it('that lives keeps its claims, whatever the clock says', () => {
    const path = newFile()
    const lock = lockOwner(path)
    onTestFinished(lock.release)
    const [living, other] = [openAs(path, lock.owner), openAs(path, 5)]
    living.push('a')
    expect(living.claim()).toHaveLength(1)
    hurryTime()
    for (const now of [0, HOURS_3, 2 * HOURS_3]) expect(other.claim({ now })).toEqual([])
    expect(other.counts()).toMatchObject({ waiting: 0, active: 1 })
  })

  it.each([
    ['whose lock is free', (file: string) => writeFileSync(file, '')],
    ['whose side file is missing', () => {}],
    ['that left a side file with something in it', (file: string) => new DatabaseSync(file).exec('CREATE TABLE a (b)')],
  ])('%s is dead: its jobs are due again at once, in their order, and its claims count', (_how, leave) => {
    const path = newFile()
    const dead = openAs(path, 0xabc)
    dead.push('a', 'b', 'c')
    expect(dead.claim({ limit: 2 })).toMatchObject([{ claimCount: 1 }, { claimCount: 1 }])
    leave(`${path}-owner-abc`)
    const other = openAs(path, 5)
    const jobs = other.claim({ limit: 3, now: 7 })
    expect(bodiesOf(jobs)).toEqual(['a', 'b', 'c'])
    expect(jobs).toMatchObject([
      { claimCount: 2, firstAt: new Date(0) },
      { claimCount: 2, firstAt: new Date(0) },
      { claimCount: 1, firstAt: new Date(7) },
    ])
    expect(other.counts()).toMatchObject({ waiting: 0, active: 3 })
    expect(sideFilesOf(path)).toEqual([])
  })

  it('that dies is found by the others within half a second, also when nothing else is due', () => {
    const path = newFile()
    const lock = lockOwner(path)
    const [dying, other] = [openAs(path, lock.owner), openAs(path, 5)]
    dying.push('a')
    dying.claim()
    let now = 1_000_000
    const spy = vi.spyOn(performance, 'now').mockImplementation(() => now)
    onTestFinished(() => spy.mockRestore())
    expect(other.claim()).toEqual([])
    lock.release()
    now += 499
    expect(other.claim()).toEqual([])
    now += 1
    expect(other.claim()).toMatchObject([{ claimCount: 2 }])
  })

  it('that died with claims in several queues loses all of them', () => {
    const path = newFile()
    for (const name of ['default', 'users']) {
      const dead = openAs(path, 0xabc, { name })
      dead.push('a')
      dead.claim()
    }
    const other = openAs(path, 5)
    other.claim()
    expect(other.counts()).toMatchObject({ waiting: 0, active: 1 })
    expect(openAs(path, 5, { name: 'users' }).counts()).toMatchObject({ waiting: 1, active: 0 })
  })

  it('that ended what was taken from it changes nothing', () => {
    const path = newFile()
    const [first, second] = [openAs(path, 0xabc), openAs(path, 5)]
    first.push('a')
    const [[job], [again]] = [first.claim(), second.claim()] as [[SqliteClaim], [SqliteClaim]]
    for (const outcome of [{ complete: true }, { retryAt: new Date(0) }, { deadLetter: 'no' }] as const) {
      first.finish(job, outcome)
      expect(first.counts()).toMatchObject({ waiting: 0, active: 1, deadLetters: 0 })
    }
    first.release([job])
    expect(first.counts()).toMatchObject({ waiting: 0, active: 1, deadLetters: 0 })
    second.finish(again, { complete: true })
    expect(first.counts()).toMatchObject({ waiting: 0, active: 0, deadLetters: 0 })
  })
})

it('side files of processes that died without a claim are removed at opening, no others', () => {
  const path = newFile()
  const living = lockOwner(path)
  for (const name of ['-owner-abc', '-owner-5', '-owner-of-mine', '-owner-']) writeFileSync(`${path}${name}`, '')
  const lock = lockOwner(path)
  for (const { release } of [living, lock]) onTestFinished(release)
  const owners = [living, lock].map(({ owner }) => owner.toString(16))
  expect(sideFilesOf(path).sort()).toEqual(['', ...owners, 'of-mine'].map((name) => `jobs.db-owner-${name}`).sort())
})

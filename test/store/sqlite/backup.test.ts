import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { bodiesOf, jobOf, setUp, unavailable, work } from './set-up.ts'

it('a backup holds what was pushed and is not complete, also what is claimed', async () => {
  const { path, open, drained } = setUp()
  const [queue, other] = [open(), open({ name: 'other' })]
  await queue.push([jobOf('complete')])
  work(queue)
  await drained(queue)
  void queue.pause()
  await queue.push([jobOf('waits')])
  const claimed = work(other, () => new Promise(() => {}))
  await other.push([jobOf('claimed')])
  await until(() => claimed.length === 1)

  const copy = join(dirname(path), 'backup.db')
  await queue.backup(copy)
  await queue.push([jobOf('later')])
  const restored = ['default', 'other'].map((name) => setUp({ path: copy }).open({ name }))
  const seen = restored.map((each) => work(each))
  for (const each of restored) await each.drain()
  expect(seen.map(bodiesOf)).toEqual([['waits'], ['claimed']])
})

it('a backup is for this user alone', needs('POSIX'), async () => {
  const { path, open } = setUp()
  await open().backup(`${path}.1`)
  expect(statSync(`${path}.1`).mode & 0o777).toBe(0o600)
})

it('a backup is written beside pushes, of an observer too', async () => {
  const { path, open } = setUp()
  const queue = open({ timeoutMs: 10_000 })
  const observer = open({ observe: true })
  let isDone = false
  async function load(): Promise<void> {
    while (!isDone) await queue.push([jobOf('x'.repeat(1_000))])
  }
  await queue.push(Array.from({ length: 1_000 }, () => jobOf()))
  const loads = [load(), load()]
  await observer.backup(`${path}.1`)
  await queue.backup(`${path}.2`)
  isDone = true
  await Promise.all(loads)
  const [first, second] = await Promise.all(
    [`${path}.1`, `${path}.2`].map((copy) => setUp({ path: copy }).open({ observe: true }).counts()),
  )
  expect(first?.waiting).toBeGreaterThanOrEqual(1_000)
  expect(second?.waiting).toBeGreaterThanOrEqual(first?.waiting ?? Number.NaN)
})

it('a backup is not written over a file, or where no folder is', async () => {
  const { path, open } = setUp()
  const queue = open()
  const taken = `${path}.txt`
  writeFileSync(taken, 'Dear diary')
  for (const expected of [unavailable, taken]) await expect(queue.backup(taken)).rejects.toThrow(expected)
  expect(readFileSync(taken, 'utf8')).toBe('Dear diary')
  await expect(queue.backup(path)).rejects.toThrow(unavailable)
  await expect(queue.backup(join(taken, 'backup.db'))).rejects.toThrow(unavailable)
  await expect(queue.backup('')).rejects.toThrow(TypeError)
})

it('a backup that fails leaves no file, and says why', async () => {
  const { path, open } = setUp({ isWhole: false })
  await expect(open({ observe: true }).backup(`${path}.backup`)).rejects.toThrow(path)
  expect(readdirSync(dirname(path))).toEqual([])
})

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { needs } from '../../support/needs.ts'
import { startProgram } from '../../support/program.ts'
import { until } from '../../support/until.ts'
import { done, jobOf, newFile, setUp, sideFilesOf, unavailable, work } from './set-up.ts'

const start = (path: string, what: string, count = '0', under: readonly string[] = []) =>
  startProgram(new URL('child.ts', import.meta.url), [path, what, count], under)

describe('processes', () => {
  it('one whose file is locked closes its queue soon after the grace, and ends; its job is claimed again', async () => {
    const { path, connect } = setUp()
    const { child, lines } = start(path, 'leave')
    await until(() => lines.includes('open'))
    child.stdin?.write('go\n')
    await until(() => lines.some((line) => line.startsWith('got')))
    const locked = connect()
    locked.exec('BEGIN IMMEDIATE')
    child.stdin?.write('close\n')
    await until(() => lines.some((line) => line.startsWith('closed after')))
    expect(Number(lines.at(-1)?.split(' ').at(-1))).toBeLessThan(200 + 1000)
    await until(() => child.exitCode !== null)
    expect(child.exitCode).toBe(0)
    locked.exec('COMMIT')
    const queue = sqliteQueue({ path, pollMs: 20 })
    onTestFinished(async () => void (await queue.close({ graceMs: 0 })))
    const seen = work(queue)
    await until(() => seen.length === 1)
    expect(seen).toMatchObject([{ claimCount: 2 }])
  }, 60_000)

  it('one that may neither sync nor start a thread, by the permission model of Node, stores and forgets', {
    ...needs('POSIX'),
    timeout: 60_000,
  }, async () => {
    const { path, open } = setUp()
    const permission = 'NODE_OPTIONS=--permission --allow-fs-read=* --allow-fs-write=*'
    const { child, lines } = start(path, 'forget', '0', ['env', permission])
    child.stdin?.write('go\n')
    await until(() => child.exitCode !== null)
    expect([child.exitCode, lines.at(-1)]).toEqual([0, 'forgotten 1'])
    expect(await open().counts()).toMatchObject({ waiting: 0 })
  })

  it('one that lost the lock on its side file, and took it again, keeps its jobs', needs('Linux'), async () => {
    const { path, open } = setUp()
    const queue = open()
    const [held, other] = [jobOf(), jobOf()]
    await queue.push([held])
    const seen = work(queue, () => new Promise(() => {}), 1)
    await until(() => seen.length === 1)
    readFileSync(join(dirname(path), sideFilesOf(path)[0] ?? '')) // As a copy of it does.
    const later = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 60_000)
    await expect(queue.push([other])).rejects.toThrow(unavailable)
    later.mockRestore()
    await queue.push([other])

    const { child, lines } = start(path, 'work')
    child.stdin?.write('go\n')
    await until(() => lines.includes(`got ${other.id}`)) // It has looked for dead owners.
    await until(async () => (await queue.counts()).active === 1)

    expect(lines).not.toContain(`got ${held.id}`)
    expect(await queue.counts()).toMatchObject({ waiting: 0, active: 1 })
  })

  it.each<[string, what: string, last: RegExp, waiting: number]>([
    ['that is idle ends by itself', 'idle', /^pushed/, 1],
    ['whose last act is to close its queue lives until that is done', 'close', /^closed$/, 0],
  ])(
    'one %s',
    async (_rule, what, last, waiting) => {
      const { path, open } = setUp()
      const { child, lines } = start(path, what)
      child.stdin?.write('go\n')
      await until(() => child.exitCode !== null)
      expect([child.exitCode, lines.at(-1)]).toEqual([0, expect.stringMatching(last)])
      expect(await open().counts()).toMatchObject({ waiting, active: 0 })
    },
    60_000,
  )

  it('that open a new file at once all get it', async () => {
    const [threads, rounds] = [3, 10]
    const directory = dirname(newFile())
    const gate = new Int32Array(new SharedArrayBuffer(4))
    const workers = Array.from({ length: threads }, () => {
      return new Worker(new URL('opener.ts', import.meta.url), { workerData: { gate, threads, rounds, directory } })
    })
    const errors = await Promise.all(workers.map(async (worker) => (await once(worker, 'message'))[0]))
    expect(errors.flat()).toEqual([])
  }, 60_000)

  it('one whose disk is full gets errors, and loses nothing whose push resolved', {
    ...needs('POSIX'),
    timeout: 60_000,
  }, async () => {
    const { path, open } = setUp()
    open()
    // A file may grow to so many blocks and no more, in this process: a write past them fails as on a full disk.
    const limited = ['sh', '-c', `trap '' XFSZ; ulimit -f 4000; exec "$@"`, 'sh']
    const { child, lines } = start(path, 'push', '1000', limited)
    child.stdin?.write('go\n')
    await until(() => lines.includes('done'))
    child.kill('SIGKILL')
    await until(() => child.signalCode !== null)
    const pushed = lines.filter((line) => line.startsWith('pushed')).map((line) => line.slice(7))
    expect(lines).toContain('failed queue_unavailable')
    expect(lines.filter((line) => /^(pushed|failed)/.test(line))).toHaveLength(1_000)
    // The log takes no more than 200, and what is in it goes into the file when it is full.
    expect(pushed.length).toBeGreaterThan(400)
    const queue = open()
    const seen = work(queue, () => done, 100)
    await queue.drain()
    expect(new Set(seen.map(({ id }) => id))).toEqual(new Set([...seen.map(({ id }) => id), ...pushed]))
    for (const { id, body } of seen) expect(`${Buffer.from(body)}`.slice(0, 36)).toBe(id)
  })
})

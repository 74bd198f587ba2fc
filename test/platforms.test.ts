/** What Linux lets pass, and Windows or macOS does not: rules for the files of the repository, and file systems with other rights. */

import fs, { globSync, linkSync, readFileSync, realpathSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { inodeOf } from '../src/store/sqlite/database.ts'
import { createPlace } from '../tools/command/src/place.ts'
import { bodiesIn, jobOf, newFile, setUp, sideFilesOf, truncateWal } from './store/sqlite/set-up.ts'
import { throwing } from './support/throwing.ts'

const root = fileURLToPath(new URL('..', import.meta.url))

describe('no source', () => {
  const RULES: readonly (readonly [what: string, pattern: RegExp, example: string])[] = [
    ['takes the path of a URL for a file', /import\.meta\.url\)\.pathname/, 'new URL("x", import.meta.url).pathname'],
    ['names the folder of temporary files', /['"`]\/tmp\b/, "'/tmp/x'"],
    [
      'starts a program of npm without a shell',
      /\b(spawn|spawnSync|execFile|execFileSync)\)?\(\s*['"](npm|npx|vitest|tsc|esbuild)['"]/,
      "execFileSync('npm', ['ci'])",
    ],
    ['asks for a user where there is none', /\bgete?[ug]id\(/, 'process.getuid()'],
    [
      'skips tests by the system, uncounted',
      /(skipIf|runIf)\(process\.platform/,
      "it.skipIf(process.platform === 'x')",
    ],
  ]
  const patterns = ['{src,adapters,bench,examples}/**/*.{ts,tsx}', 'test/**/*.{ts,mjs}', 'docs/*.ts', '*.ts']
  const exclude = ['**/node_modules/**', 'test/everywhere/**', 'test/platforms.test.ts']
  const paths = globSync(patterns, { cwd: root, exclude })
  const texts = new Map(paths.map((path) => [path, readFileSync(join(root, path), 'utf8')]))

  it.each(RULES)('%s', (_what, pattern, example) => {
    expect(texts.size).toBeGreaterThan(500)
    expect([...texts].filter(([, text]) => pattern.test(text)).map(([path]) => path)).toEqual([])
    expect(example).toMatch(pattern)
  })
})

/** Replaces functions of node:fs until the test ends. */
function replaceInFs(name: 'rmSync' | 'statSync', fake: (...args: never[]) => unknown): void {
  const spy = vi.spyOn(fs, name).mockImplementation(fake as never)
  syncBuiltinESMExports()
  onTestFinished(() => {
    spy.mockRestore()
    syncBuiltinESMExports()
  })
}

describe('a file system that removes no open file, as that of Windows', () => {
  const refuse = throwing(Object.assign(new Error('EBUSY: resource busy or locked'), { code: 'EBUSY' }))

  it('a queue closes nonetheless; the side file that it leaves is removed by the next that opens the file', async () => {
    const { path, open } = setUp()
    const queue = open()
    await queue.push([jobOf('a')])
    replaceInFs('rmSync', refuse)
    await queue.close({ graceMs: 0 })
    const [left] = sideFilesOf(path)
    expect(left).toBeDefined()
    vi.mocked(fs.rmSync).mockRestore()
    syncBuiltinESMExports()
    expect(await open().counts()).toMatchObject({ waiting: 1 })
    expect(sideFilesOf(path)).toEqual([expect.not.stringMatching(`${left}`)])
  })

  it('a queue whose WAL is truncated in use loses nothing that is acknowledged after', async () => {
    const { path, queue } = await truncateWal()
    replaceInFs('rmSync', refuse)
    await expect(queue.push([jobOf()])).rejects.toThrow('truncated')
    await queue.push([jobOf('after')])
    await queue.close({ graceMs: 0 })
    expect(bodiesIn(path)).toEqual(['after', 'before'])
  })
})

it('a file system that ignores case, as that of Windows and macOS: one file is one, however it is written', async () => {
  const { path, open } = setUp()
  const [queue, shouted] = [open(), join(dirname(path), 'JOBS.DB')]
  linkSync(path, shouted) // Two names for one file.
  const { native } = realpathSync
  const spy = vi.spyOn(realpathSync, 'native').mockImplementation(((name: string) => {
    return native(name).replace(shouted, path)
  }) as typeof native)
  onTestFinished(() => spy.mockRestore())
  await Promise.all([queue.push([jobOf('a')]), open({ path: shouted }).push([jobOf('b')])])
  expect(await queue.counts()).toMatchObject({ waiting: 2 })
  expect(sideFilesOf(path)).toHaveLength(1)
})

it('a disk whose paths Windows does not know, such as one in memory: a queue opens nonetheless', async () => {
  const spy = vi.spyOn(realpathSync, 'native').mockImplementation(throwing('EISDIR'))
  onTestFinished(() => spy.mockRestore())
  const queue = setUp().open()
  await queue.push([jobOf()])
  expect(await queue.counts()).toMatchObject({ waiting: 1 })
})

it.each(['C:\\queues\\inbox.sqlite', 'c:/inbox.sqlite'])('%s is a file for the command, not a URL', (location) => {
  expect(createPlace(location, {}).shown).toBe(resolve(location))
})

it('a file system whose numbers of files have 64 bits, as that of Windows: two files that follow on each other differ', () => {
  const path = newFile()
  let ino = 2n ** 60n
  replaceInFs('statSync', (_path: string, { bigint }: { readonly bigint: boolean }) => {
    return bigint ? { dev: 1n, ino } : { dev: 1, ino: Number(ino) }
  })
  const before = inodeOf(path)
  ino += 1n
  expect(inodeOf(path)).not.toBe(before)
})

it('a push of a queue is in the disk of a Mac, not only in its cache', async () => {
  const exec = vi.spyOn(DatabaseSync.prototype, 'exec')
  onTestFinished(() => exec.mockRestore())
  const queue = setUp().open()
  await queue.push([jobOf()])
  expect(exec.mock.calls.filter(([sql]) => sql.includes('fullfsync = ON')).length).toBeGreaterThan(0)
})

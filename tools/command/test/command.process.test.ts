/** The command as a program: signals, streams, a terminal, how soon it starts, and the packages it finds beside it. */

import { execFile, execFileSync } from 'node:child_process'
import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fixtures, signedRequest, startEndpoint } from 'hookline/testing'
import { expect, it } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { createStore } from '../src/request-store.ts'
import { bin, createFolder, hookline, like, root, spawnHookline, urlOf } from './command.ts'
import { keptRequest } from './kept-request.ts'

const secret = 'a secret'
const env = { HOOKLINE_SECRET: secret }
const signed = signedRequest(fixtures.track, secret)

it('listen ends quietly when what reads its lines ends', needs('POSIX'), async () => {
  const { child, printed, ended } = spawnHookline(['listen', '--port', '0'], { cwd: await createFolder(), env })
  const url = await urlOf({ printed })
  await fetch(url, signed)
  await until(() => printed.stdout.includes('\n'))
  child.stdout?.destroy()
  await fetch(url, signed).catch(() => {})
  expect(await ended).toMatchObject({ code: 0, stderr: like(/^Listening on .*\n$/) })
})

it('send sends no faster than --rate says', async () => {
  await using endpoint = await startEndpoint()
  const args = ['send', 'track', '--count', '11', '--rate', '20', '--concurrency', '5', '--to', endpoint.url]
  const started = performance.now()
  await hookline(args, { env })
  expect(performance.now() - started).toBeGreaterThan(390) // Ten intervals of 50 ms, less what may be made up for.
})

it('show --raw writes the exact bytes', async () => {
  const store = join(await createFolder(), 'listen.sqlite')
  const body = Buffer.from([0xff, 0x00, 0x0a, 0x1b, 0x5b])
  const kept = createStore(store)
  kept.append(keptRequest('bbbb00000003', { body }))
  kept.close()
  const written = execFileSync(process.execPath, [bin, 'show', 'bb', '--raw', '--store', store])
  expect(written).toEqual(body)
})

it.each([
  ['redis://127.0.0.1:1', ['bullmq', 'ioredis']],
  ['postgres://127.0.0.1:1/x', ['pg-boss']],
])('queue %s names the packages of the engine, and finds them in the working directory', async (location, names) => {
  const folder = await createFolder()
  const [installed, cwd] = [join(folder, 'cache/node_modules/hookline'), join(folder, 'project')]
  await mkdir(join(cwd, 'node_modules'), { recursive: true })
  for (const name of ['dist', 'package.json']) await cp(join(root, name), join(installed, name), { recursive: true })
  await symlink(join(root, 'node_modules/raw-body'), join(installed, '../raw-body'), 'junction')
  await writeFile(join(cwd, 'package.json'), '{}')
  const run = () =>
    new Promise<string>((resolve) => {
      const args = [join(installed, 'dist/cli.js'), 'queue', location]
      execFile(process.execPath, args, { cwd }, (_error, _stdout, stderr) => resolve(stderr))
    })

  expect(await run()).toContain(`npx -p hookline ${names.map((name) => `-p ${name}`).join(' ')} hookline queue`)
  for (const name of names) await symlink(join(root, 'node_modules', name), join(cwd, 'node_modules', name), 'junction')
  expect(await run()).toContain('ECONNREFUSED')
})

/**
 * `npm run hostile`: attacks a process in every way at once, for an hour by default, while honest messages go on;
 * `-- --seconds 60`. Fails when one that was acknowledged was not handled, or when memory or descriptors are left over.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEndpoint } from '../../src/testing/endpoint.ts'
import { privateRedis } from '../support/redis.ts'
import * as attacks from './attacks.ts'
import type { Standing, TargetPorts, TargetSettings } from './target.ts'

const MOST_GROWTH_MB = 20
const MOST_DESCRIPTORS = 2
/** What the process does before it is measured the first time: it opens what it needs and compiles its code. */
const OPENING_MS = 5_000
/** Longer than the deadline of a receiver, and than connections stay open without a request. */
const QUIET_MS = 8_000

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '3600' } } })
const seconds = Number(values.seconds)
if (!(seconds > 0)) throw new TypeError('--seconds: must be a number above 0.')

const folder = mkdtempSync(join(tmpdir(), 'hookline-hostile-'))
const redis = await privateRedis('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru')
await redis.start()
const silent = createServer((socket) => socket.on('error', () => {}).resume())
const endpoint = await startEndpoint({ tls: 'self_signed' })
const settings: TargetSettings = {
  secret: 'a shared secret',
  writeKey: 'the write key of the shop',
  file: join(folder, 'inbox.db'),
  evictingRedis: redis.url,
  silentPostgres: `postgres://user@127.0.0.1:${await portOf(silent)}/none`,
  selfSigned: endpoint.url,
}
const child = fork(fileURLToPath(new URL('target.ts', import.meta.url)), [JSON.stringify(settings)], {
  execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
})
child.on('exit', (code) => code !== 0 && fail(`The process ended with the exit code ${code}.`))

try {
  process.exitCode = (await run()) ? 0 : 1
} finally {
  child.send('close')
  const stuck = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await once(child, 'exit')
  clearTimeout(stuck)
  silent.close()
  await Promise.all([endpoint.close().catch(() => {}), redis.dispose()])
  rmSync(folder, { recursive: true, force: true })
}

async function run(): Promise<boolean> {
  const [ports] = (await once(child, 'message')) as [TargetPorts]
  const target: attacks.Target = { ...settings, ...ports }
  const accepted = new Set<string>()
  const honest = attacks.honest(accepted)

  await honest(target, AbortSignal.timeout(OPENING_MS))
  await wait(QUIET_MS)
  const before = await standing()

  console.log(`Attacking for ${seconds} s`)
  const over = AbortSignal.timeout(seconds * 1_000)
  const { slowBodies, abandonedUploads, unfinishedStreams, resets, forgeries, junkBatches } = attacks
  const all = { slowBodies, abandonedUploads, unfinishedStreams, resets, forgeries, junkBatches, honest }
  await Promise.all(
    Object.entries(all).map(async ([name, attack]) => console.log(`${name}: ${await attack(target, over)}`)),
  )
  await wait(QUIET_MS)
  const after = await emptied()

  const handled = new Set(after.handled)
  const missing = [...accepted].filter((id) => !handled.has(id)).length
  const growth = after.live - before.live
  const left = after.descriptors - before.descriptors
  console.log(`acknowledged: ${accepted.size}, not handled: ${missing}, dead letters: ${after.deadLetters}`)
  console.log(
    `live memory: ${before.live.toFixed(1)} MB before, ${after.live.toFixed(1)} MB after, at most ${MOST_GROWTH_MB} more`,
  )
  console.log(`descriptors: ${before.descriptors} before, ${after.descriptors} after, at most ${MOST_DESCRIPTORS} more`)
  console.log(`errors reported: ${after.errors}`)
  return accepted.size > 0 && missing === 0 && growth <= MOST_GROWTH_MB && left <= MOST_DESCRIPTORS
}

async function emptied(): Promise<Standing> {
  for (;;) {
    const now = await standing()
    if (now.waiting === 0) return now
    await wait(500)
  }
}

async function standing(): Promise<Standing> {
  child.send('standing')
  const [answer] = (await once(child, 'message')) as [Standing]
  return answer
}

function portOf(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

function fail(reason: string): never {
  console.error(reason)
  process.exit(1)
}

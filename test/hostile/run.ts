/**
 * Run as a program: attacks a process in every way at once, for an hour by default, while honest messages go on; `--seconds 60`.
 * Fails when an attack did not happen, when a message that was acknowledged was not handled, when the process took too much memory,
 * or when memory or descriptors are left over.
 */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { startEndpoint } from '../../src/testing/scripted-endpoint.ts'
import { privateRedis } from '../support/redis.ts'
import { type Attack, type Counts, describe, portOf, type Target } from './attack.ts'
import * as connections from './connections.ts'
import { measureDelays } from './delays.ts'
import { bombs, chosenBodies, flood, forgeries, honest, junkBatches } from './requests.ts'
import type { Report, Standing, TargetPorts, TargetSettings } from './target.ts'

const MAX_LEFT_MB = 20
/** Bodies in flight are about 50 MB of it, and most of the rest is garbage: V8 collects it when it is a few times what lives. */
const MAX_PEAK_MB = 400
/** The bodies of the flood are 300 MB while they wait for their secret, and once more while their parts are joined. */
const MAX_FLOOD_MB = 600
/** The thread that writes the log of a SQLite file into it has six. */
const MAX_DESCRIPTORS = 8
/** With the room that a shared machine needs, in continuous integration. */
const MAX_DELAY_MS = 50 * (process.env.CI === undefined ? 1 : 4)
const REFUSED = ['attempt: self_signed', 'attempt: tls', 'secret_unavailable', 'inbox_unavailable']
/** Forged bodies at once, 500 KB each. */
const FLOOD = 600
/** What the process does before it is measured the first time: it opens what it needs and compiles its code. */
const OPENING_MS = 5_000
/** Longer than the deadline of a receiver, and than connections stay open without a request. */
const QUIET_MS = 8_000
const MAX_EMPTYING_MS = 60_000

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '3600' } } })
const seconds = Number(values.seconds)
if (!(seconds > 0)) throw new TypeError('--seconds: must be a number above 0.')

const folder = mkdtempSync(join(tmpdir(), 'hookline-hostile-'))
const redis = await privateRedis('--maxmemory', '50mb', '--maxmemory-policy', 'allkeys-lru')
await redis.start()
let silenced = 0
const silent = createServer((socket) => {
  silenced += 1
  socket.on('error', () => {}).resume()
})
const untrusted = [await startEndpoint({ tls: 'self_signed' }), await startEndpoint({ tls: 'wrong_name' })]
const settings: TargetSettings = {
  secret: 'a shared secret',
  writeKey: 'the write key of the shop',
  file: join(folder, 'inbox.db'),
  evictingRedis: redis.url,
  silentPostgres: `postgres://user@127.0.0.1:${await portOf(silent)}/none`,
  untrusted: untrusted.map(({ url }) => url),
  ca: untrusted.map(({ ca }) => ca),
}
const child = fork(fileURLToPath(new URL('target.ts', import.meta.url)), [JSON.stringify(settings)], {
  execArgv: ['--expose-gc', '--disable-warning=ExperimentalWarning'],
})
child.on('exit', async (code, signal) => {
  if (code === 0) return
  console.error(`ERROR: The process must end by itself. Got ${signal ?? `the exit code ${code}`}.`)
  await redis.dispose()
  rmSync(folder, { recursive: true, force: true })
  process.exit(1)
})
const accepted = new Set<string>()
const handled = new Set<string>()
const faults: string[] = []
let gotStanding: (standing: Standing) => void = () => {}

try {
  await run()
} finally {
  child.send('close')
  const stuck = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await once(child, 'exit')
  clearTimeout(stuck)
  silent.close()
  await Promise.all([...untrusted.map((endpoint) => endpoint.close()), redis.dispose()])
  rmSync(folder, { recursive: true, force: true })
}
for (const fault of faults) console.log(`ERROR: ${fault}`)
process.exitCode = faults.length === 0 ? 0 : 1

async function run(): Promise<void> {
  for (const [name, ms] of await measureDelays()) {
    console.log(`the event loop is held for ${ms.toFixed(1)} ms: ${name}`)
    if (ms > MAX_DELAY_MS)
      faults.push(`The event loop is held for ${MAX_DELAY_MS} ms at most. Got ${ms.toFixed(1)} ms: ${name}.`)
  }
  const [ports] = (await once(child, 'message')) as [TargetPorts]
  const target: Target = { ...settings, ...ports }
  child.on('message', (report: Report) => {
    if ('handled' in report) for (const id of report.handled) handled.add(id)
    else gotStanding(report.standing)
  })
  const traffic = honest(accepted)
  await traffic.run(target, AbortSignal.timeout(OPENING_MS), new Map())
  await wait(QUIET_MS)
  const before = await standing()

  console.log(`Attacking for ${seconds} s`)
  const over = AbortSignal.timeout(seconds * 1_000)
  const attacks = { ...connections, forgeries, junkBatches, chosenBodies, bombs, honest: traffic }
  await Promise.all(Object.entries(attacks).map(([name, attack]) => make(name, attack, target, over)))
  await wait(QUIET_MS)
  const after = await emptied()
  console.log(`flood: ${describe(await flood(target, FLOOD))}`)
  await wait(1_000)
  const flooded = await standing()

  const { waiting, deadLetters, errors } = after
  const missing = [...accepted].filter((id) => !handled.has(id)).length
  console.log(`reported: ${describe(new Map(Object.entries(errors)))}`)
  console.log(
    `acknowledged: ${accepted.size}, not handled: ${missing}, waiting: ${waiting}, dead letters: ${deadLetters}`,
  )
  if (missing > 0 || waiting > 0) faults.push('Every acknowledged message must be handled.')

  requireMet('the target', Object.keys(errors), ['body_aborted', 'failed handshakes', ...REFUSED])
  const [posted] = untrusted.filter(({ bytesReceived }) => bytesReceived > 0)
  if (posted !== undefined) faults.push(`An untrusted server must get no request. Got one at ${posted.url}.`)
  if (silenced === 0) faults.push('A queue must connect to the silent PostgreSQL. Got no connection.')

  requireAtMost('live memory after the attack, in MB', before.live, after.live, MAX_LEFT_MB)
  requireAtMost('live memory a second after the flood, in MB', before.live, flooded.live, MAX_LEFT_MB)
  requireAtMost('peak memory of the attack, in MB', before.peak, after.peak, MAX_PEAK_MB)
  requireAtMost('peak memory of the flood, in MB', before.peak, flooded.peak, MAX_FLOOD_MB)
  requireAtMost('descriptors', before.descriptors, flooded.descriptors, MAX_DESCRIPTORS)
}

async function make(name: string, { run, met, never }: Attack, target: Target, signal: AbortSignal): Promise<void> {
  const counts: Counts = new Map()
  await run(target, signal, counts)
  console.log(`${name}: ${describe(counts)}`)
  requireMet(name, [...counts.keys()], met)
  for (const result of never) if (counts.has(result)) faults.push(`${name} must not end so: ${result}.`)
}

function requireMet(name: string, results: readonly string[], met: readonly string[]): void {
  for (const result of met) if (!results.includes(result)) faults.push(`${name} did not meet: ${result}.`)
}

function requireAtMost(what: string, before: number, after: number, most: number): void {
  console.log(`${what}: ${Math.round(before)} before, ${Math.round(after)} after, at most ${most} more`)
  if (after - before > most)
    faults.push(`${what}: at most ${most} more than before. Got ${Math.round(after - before)}.`)
}

/** Waits until the queues are empty, but not for ever. */
async function emptied(): Promise<Standing> {
  for (const until = Date.now() + MAX_EMPTYING_MS; ; await wait(500)) {
    const now = await standing()
    if (now.waiting === 0 || Date.now() > until) return now
  }
}

function standing(): Promise<Standing> {
  return new Promise((resolve) => {
    gotStanding = resolve
    child.send('standing')
  })
}

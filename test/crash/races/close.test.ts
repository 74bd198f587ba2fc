/** A receiver whose engine falls silent under load, and that is closed. */

import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'vitest'
import { openProxy } from '../../support/redis.ts'
import { startChild } from '../child.ts'
import { engines, rounds, type TestedSite, testOnEngines } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { createLoad } from '../load.ts'
import type { ReceiverSettings } from '../programs/receiver.ts'

const GRACE_MS = 500
const ROOM_MS = 1_000
const SILENT_WITHIN_MS = 300
const LAPSED_MS = 45_000

const TITLE = 'a receiver whose engine falls silent ends within a second after its grace, and loses nothing'
async function run({ engine, site, random }: TestedSite): Promise<void> {
  const url = new URL(site.place.at)
  const proxy = await openProxy(Number(url.port || (engine === 'bullmq' ? 6379 : 5432)))
  url.host = `127.0.0.1:${proxy.port}`
  const { place, journal } = site
  const settings: ReceiverSettings = { place, journal, graceMs: GRACE_MS }
  const accepted = new Set<string>()
  let sent = 0
  const times: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const child = startChild('receiver', { ...settings, place: { ...place, at: url.href } })
    const load = createLoad(await child.ready, 10)
    const posted = load.loop(async () => {
      const id = `${sent++}`
      const status = await load.post(id).catch(() => 0)
      if (status === 200) accepted.add(id)
      return status === 200
    })
    await wait(random() * SILENT_WITHIN_MS)
    proxy.silence()
    await wait(random() * SILENT_WITHIN_MS)
    const began = performance.now()
    expect(await child.close()).toBe(0)
    times.push(performance.now() - began)
    await posted
    await load.close()
    proxy.cut()
    proxy.resume()
  }
  const last = startChild('receiver', settings)
  await last.ready
  const readMissing = () => {
    const handled = new Set(readJournal(journal).map(({ id }) => id))
    return [...accepted].filter((id) => !handled.has(id))
  }
  for (const end = Date.now() + LAPSED_MS; readMissing().length > 0 && Date.now() < end; ) await wait(100)
  await last.close()
  expect(Math.max(...times)).toBeLessThan(GRACE_MS + 1_000 + ROOM_MS)
  expect(readMissing()).toEqual([])
  await proxy.close()
}

testOnEngines(TITLE, run, { tested: engines.slice(1) })

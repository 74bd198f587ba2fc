/** A receiver whose engine falls silent under load, and that is closed. */

import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openProxy } from '../../support/redis.ts'
import { startChild } from '../child.ts'
import { createSite, engines } from '../engines.ts'
import { readJournal } from '../journal.ts'
import { createLoad, secret } from '../load.ts'
import type { ReceiverSettings } from '../programs/receiver.ts'
import { createRandom, readSettings } from '../random.ts'

const { rounds, seed } = readSettings()
const GRACE_MS = 500
/** Beside the second that docs/queues.md gives: for the end of the process, on a busy machine. */
const ROOM_MS = 1_000
const SILENT_WITHIN_MS = 300
/** Then the leases of every engine are over, and its messages handled. */
const LAPSED_MS = 45_000

describe.each(engines.slice(1))('a receiver on $engine, which falls silent', ({ engine, at, leaseMs }) => {
  it.skipIf(at === undefined)(
    'ends within a second after its grace, and loses nothing',
    async () => {
      const site = createSite(engine, at ?? '', leaseMs)
      onTestFinished(site.remove)
      const random = createRandom(seed)
      const url = new URL(at ?? '')
      const proxy = await openProxy(Number(url.port || (engine === 'bullmq' ? 6379 : 5432)))
      onTestFinished(proxy.close)
      url.host = `127.0.0.1:${proxy.port}`
      const journal = join(site.folder, 'journal')
      const settings: ReceiverSettings = {
        place: site.place,
        secret,
        journal,
        by: 'one',
        failing: 0,
        graceMs: GRACE_MS,
      }
      const accepted = new Set<string>()
      let sent = 0
      const times: number[] = []
      for (let round = 0; round < rounds; round += 1) {
        const child = startChild('receiver', { ...settings, place: { ...site.place, at: url.href } })
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
      const worst = Math.max(...times)
      console.log(`${engine}, close: ${accepted.size} accepted, longest end ${Math.round(worst)} ms of ${rounds}`)
      expect(worst).toBeLessThan(GRACE_MS + 1_000 + ROOM_MS)
      expect(readMissing()).toEqual([])
    },
    60_000 + rounds * 10_000,
  )
})

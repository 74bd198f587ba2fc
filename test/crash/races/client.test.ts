/** A client in a program that ends while it sends, without close(). */

import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { listen } from '../programs/answers.ts'
import type { ClientSettings } from '../programs/client.ts'
import { createRandom, readSettings } from '../random.ts'

const { rounds, seed } = readSettings()
const program = fileURLToPath(new URL('../programs/client.ts', import.meta.url))
const CALLS = 100
const END_WITHIN_MS = 30

it(
  'a client in a program that ends at any moment sends what waits, or says how many calls are lost',
  async () => {
    const random = createRandom(seed)
    const arrived = new Map<string, number>()
    const server = createServer(async (request, response) => {
      const { batch } = (await json(request)) as { batch: readonly { event: string }[] }
      for (const { event } of batch) arrived.set(event, (arrived.get(event) ?? 0) + 1)
      response.end('{"success":true}')
    })
    const origin = await listen(server)
    onTestFinished(() => void server.close())
    const endpoint = `${origin}/v1/batch`

    let lostInAll = 0
    async function run(how: ClientSettings['how']): Promise<void> {
      arrived.set(how, 0)
      const settings: ClientSettings = { endpoint, how, calls: CALLS, afterMs: random() * END_WITHIN_MS }
      const args = ['--disable-warning=ExperimentalWarning', program, JSON.stringify(settings)]
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args).catch((error) => error)
      const recorded = Number(stdout)
      const lost = Number(/^hookline: (\d+) calls? not delivered/m.exec(stderr)?.[1] ?? 0)
      expect(recorded).toBeGreaterThan(0)
      if (how === 'falls off') expect([arrived.get(how), stderr]).toEqual([recorded, ''])
      else expect((arrived.get(how) ?? 0) + lost).toBeGreaterThanOrEqual(recorded)
      lostInAll += lost
    }
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all((['falls off', 'exits', 'throws'] as const).map(run))
    }
    console.log(`client: ${rounds} rounds, ${lostInAll} calls reported as lost`)
    expect(lostInAll).toBeGreaterThan(0)
  },
  60_000 + rounds * 10_000,
)

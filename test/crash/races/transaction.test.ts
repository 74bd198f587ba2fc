/** A process that is killed in or right after a transaction with an order and its message: there is a message for each order, and no other. */

import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { expect, inject, it } from 'vitest'
import { startChild } from '../child.ts'
import { createSite, rounds, seed } from '../engines.ts'
import { listen } from '../programs/answers.ts'
import type { DestinationSettings } from '../programs/destination.ts'
import type { Moment, ShopSettings } from '../programs/shop.ts'
import { createRandom } from '../random.ts'

const databaseUrl = inject('databaseUrl')
const MAX_ORDERS = 200

async function run(moment: Moment, random: () => number): Promise<number> {
  const site = createSite('pg-boss', databaseUrl as string, 10_000)
  const { place } = site
  const posted = new Set<string>()
  const server = createServer(async (request, response) => {
    const body = (await json(request).catch(() => undefined)) as { messageId: string } | undefined
    if (body !== undefined) posted.add(body.messageId)
    response.end()
  })
  const url = `${await listen(server)}/`
  const client = new pg.Client({ connectionString: databaseUrl as string })
  await client.connect()

  try {
    const orderCount = 1 + Math.floor(random() * MAX_ORDERS)
    const shop = startChild('shop', { place, url, orders: orderCount, moment } satisfies ShopSettings)
    const last = await shop.ready
    shop.kill()
    await shop.ended
    const idle = { place, url, journal: `${site.folder}/journal`, by: 'next', messages: 0 }
    const next = startChild('destination', idle satisfies DestinationSettings)
    await next.ready
    const left = `SELECT FROM ${place.name}.job WHERE name = $1 AND state < 'completed' LIMIT 1`
    while ((await client.query(left, [place.name])).rowCount !== 0) await wait(50)
    expect(await next.ask('deadLetters')).toEqual([])
    await next.close()
    const orders = (await client.query(`SELECT id FROM ${place.name}.orders`)).rows.map(({ id }) => id as string)
    expect([...posted].sort()).toEqual(orders.sort())
    expect(orders.includes(last)).toBe(moment === 'committed')
    return orders.length
  } finally {
    server.closeAllConnections()
    server.close()
    await client.end()
    await site.remove()
  }
}

it.skipIf(databaseUrl === undefined)(
  'a process that is killed while it takes orders on pg-boss: each order has its message, and no message is without its order',
  async () => {
    const random = createRandom(seed)
    for (let round = 0; round < rounds; round += 1) {
      const [, committed] = await Promise.all([run('inserted', random), run('committed', random)])
      expect(committed).toBeGreaterThan(0)
    }
  },
  60_000 + rounds * 60_000,
)

/** Attacks by whole requests, and the honest traffic among them. */

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { constants, deflateRawSync } from 'node:zlib'
import { Pool } from 'undici'
import { fixtures } from '../../src/testing/fixtures.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import {
  type Attack,
  basicAuth,
  type Counts,
  FORGED,
  inParallel,
  JSON_TYPE,
  LARGE_BODY,
  type Target,
  tally,
} from './attack.ts'

function forgery(path: string, source: number) {
  return { path, method: 'POST', headers: { ...FORGED, 'x-source': `${source}` }, body: LARGE_BODY } as const
}

/** Large forged bodies, to a receiver whose secret provider never answers and to one that knows its secret. */
export const forgeries: Attack = {
  met: ['401', '503'],
  never: ['200'],
  async run({ http1 }, signal) {
    const counts: Counts = new Map()
    const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 60 })
    await inParallel(60, signal, async (worker) => {
      const path = worker % 3 === 0 ? '/inline' : '/hanging'
      await tally(counts, pool.request(forgery(path, worker)))
      await wait(100)
    })
    await pool.destroy()
    return counts
  },
}

/** Batches of invalid calls, wrong keys and what is no JSON. */
export const junkBatches: Attack = {
  met: ['200', '400', '401'], // A batch of invalid calls is answered 200, with a list of refusals.
  never: [],
  async run({ http1, writeKey }, signal) {
    const counts: Counts = new Map()
    const invalid = JSON.stringify({
      batch: Array.from({ length: 8_000 }, () => ({ type: 'track', userId: 7, event: '' })),
    })
    const deep = '['.repeat(200_000)
    const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 6 })
    await inParallel(6, signal, async (worker) => {
      const headers = { ...JSON_TYPE, ...basicAuth(worker % 2 === 0 ? writeKey : 'a guess') }
      const body = worker < 4 ? invalid : deep
      await tally(counts, pool.request({ path: '/v1/batch', method: 'POST', headers, body }))
      await wait(100)
    })
    await pool.destroy()
    return counts
  },
}

/** Signed bodies of 300 to 500 KB whose content an attacker chose: deep, with keys that reach a prototype, with many keys, long batches. */
export const chosenBodies: Attack = {
  met: ['200', '413'],
  never: ['500'],
  async run({ http1, secret }, signal) {
    const counts: Counts = new Map()
    const hostile = '{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}}'
    const bodies = [
      `{"deep":${'['.repeat(150_000)}${']'.repeat(150_000)}}`,
      `{"list":[${Array(7_000).fill(hostile).join(',')}]}`,
      `{${Array.from({ length: 30_000 }, (_, index) => `"key-${index}":1`).join(',')}}`,
      `[${Array(1_000).fill(hostile).join(',')}]`,
      `[${Array(100_000).fill('1').join(',')}]`,
    ].map((body) => signedRequest(body, secret))
    const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 2 })
    let sent = 0
    await inParallel(2, signal, async () => {
      const { headers, body } = bodies[sent++ % bodies.length] as (typeof bodies)[number]
      const method = sent % 2 === 0 ? 'PUT' : 'POST'
      await tally(counts, pool.request({ path: '/inline', method, headers, body }))
      await wait(100)
    })
    await pool.destroy()
    return counts
  },
}

/** Bodies of 480 KB that would inflate to 480 MB, and such as are not compressed at all. */
export const bombs: Attack = {
  met: ['400', '413'],
  never: ['200'],
  async run({ http1, writeKey }, signal) {
    const counts: Counts = new Map()
    const zeros = deflateRawSync(Buffer.alloc(16 * 1024 * 1024), { finishFlush: constants.Z_FULL_FLUSH })
    const head = Buffer.from('1f8b0800000000000003', 'hex')
    const bomb = Buffer.concat([head, ...Array.from({ length: 30 }, () => zeros)])
    const headers = { ...JSON_TYPE, ...basicAuth(writeKey), 'content-encoding': 'gzip' }
    const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 6 })
    await inParallel(6, signal, async (worker) => {
      const body = worker % 2 === 0 ? bomb : LARGE_BODY
      await tally(counts, pool.request({ path: '/v1/batch', method: 'POST', headers, body }))
      await wait(100)
    })
    await pool.destroy()
    return counts
  },
}

/** As many large forged bodies at once, to a receiver whose secret provider never answers. Resolves when each is answered. */
export async function flood({ http1 }: Target, count: number): Promise<Counts> {
  const counts: Counts = new Map()
  const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: count })
  await Promise.all(
    Array.from({ length: count }, (_, index) => tally(counts, pool.request(forgery('/hanging', index)))),
  )
  await pool.destroy()
  return counts
}

export function honest(accepted: Set<string>): Attack {
  return {
    met: ['/inline 200', '/stored 200', '/v1/track 200', '/evicting 503', '/silent 503'],
    never: ['/evicting 200', '/silent 200'],
    async run({ http1, secret, writeKey }, signal) {
      const counts: Counts = new Map()
      const pool = new Pool(`http://127.0.0.1:${http1}`, { connections: 40 })
      const paths = ['/inline', '/stored', '/evicting', '/silent', '/v1/track']
      await inParallel(paths.length * 4, signal, async (worker) => {
        const path = paths[worker % paths.length] as string
        const messageId = randomUUID()
        const message = { ...fixtures.track, messageId }
        const call = { headers: { ...JSON_TYPE, ...basicAuth(writeKey) }, body: JSON.stringify(message) }
        const { headers, body } = path === '/v1/track' ? call : signedRequest(message, secret)
        const status = await tally(counts, pool.request({ path, method: 'POST', headers, body }), `${path} `)
        if (status === 200) accepted.add(messageId)
        await wait(50)
      })
      await pool.destroy()
      return counts
    },
  }
}

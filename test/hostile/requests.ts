/** Attacks by whole requests, and the honest traffic among them. */

import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { constants, deflateRawSync } from 'node:zlib'
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
  type Posted,
  type Target,
  withPosts,
} from './attack.ts'

function forgery(path: string, source: number): Posted {
  return { path, headers: { ...FORGED, 'x-source': `${source}` }, body: LARGE_BODY }
}

/** Each of so many workers posts, waits, and posts again; what, is prepared once. */
function posting(
  connections: number,
  prepare: (target: Target) => (worker: number, sent: number) => Posted,
): Attack['run'] {
  return (target, signal, counts) => {
    const next = prepare(target)
    let sent = 0
    return withPosts(target, connections, counts, (post) =>
      inParallel(connections, signal, async (worker) => {
        await post(next(worker, sent++))
        await wait(100)
      }),
    )
  }
}

/** Large forged bodies, to a receiver whose secret provider never answers and to one that knows its secret. */
export const forgeries: Attack = {
  met: ['401', '503'],
  never: ['200'],
  run: posting(60, () => (worker) => forgery(worker % 3 === 0 ? '/inline' : '/hanging', worker)),
}

/** Batches of invalid calls, wrong keys and what is no JSON. */
export const junkBatches: Attack = {
  met: ['200', '400', '401'], // A batch of invalid calls is answered 200, with a list of refusals.
  never: [],
  run: posting(6, ({ writeKey }) => {
    const invalid = JSON.stringify({ batch: Array(8_000).fill({ type: 'track', userId: 7, event: '' }) })
    return (worker) => ({
      path: '/v1/batch',
      headers: { ...JSON_TYPE, ...basicAuth(worker % 2 === 0 ? writeKey : 'a guess') },
      body: worker < 4 ? invalid : '['.repeat(200_000),
    })
  }),
}

/** Signed bodies of 300 to 500 KB whose content an attacker chose: deep, with keys that reach a prototype, with many keys, long batches. */
export const chosenBodies: Attack = {
  met: ['200', '413'],
  never: ['500'],
  run: posting(2, ({ secret }) => {
    const hostile = '{"__proto__":{"a":1},"constructor":{"prototype":{"a":1}}}'
    const bodies = [
      `{"deep":${'['.repeat(150_000)}${']'.repeat(150_000)}}`,
      `{"list":[${Array(7_000).fill(hostile).join(',')}]}`,
      `{${Array.from({ length: 30_000 }, (_, index) => `"key-${index}":1`).join(',')}}`,
      `[${Array(1_000).fill(hostile).join(',')}]`,
      `[${Array(100_000).fill('1').join(',')}]`,
    ].map((body) => signedRequest(body, secret))
    return (_worker, sent) => {
      const { headers, body } = bodies[sent % bodies.length] as (typeof bodies)[number]
      return { path: '/inline', method: sent % 2 === 0 ? 'POST' : 'PUT', headers, body }
    }
  }),
}

/** Bodies of 480 KB that would inflate to 480 MB, and such as are not compressed at all. */
export const bombs: Attack = {
  met: ['400', '413'],
  never: ['200'],
  run: posting(6, ({ writeKey }) => {
    const zeros = deflateRawSync(Buffer.alloc(16 * 1024 * 1024), { finishFlush: constants.Z_FULL_FLUSH })
    const bomb = Buffer.concat([Buffer.from('1f8b0800000000000003', 'hex'), ...Array<Buffer>(30).fill(zeros)])
    const headers = { ...JSON_TYPE, ...basicAuth(writeKey), 'content-encoding': 'gzip' }
    return (worker) => ({ path: '/v1/batch', headers, body: worker % 2 === 0 ? bomb : LARGE_BODY })
  }),
}

/** As many large forged bodies at once, to a receiver whose secret provider never answers. Resolves when each is answered. */
export async function flood(target: Target, count: number): Promise<Counts> {
  const counts: Counts = new Map()
  await withPosts(target, count, counts, (post) =>
    Promise.all(Array.from({ length: count }, (_, index) => post(forgery('/hanging', index)))),
  )
  return counts
}

export function honest(accepted: Set<string>): Attack {
  const paths = ['/inline', '/stored', '/evicting', '/silent', '/v1/track']
  return {
    met: ['/inline 200', '/stored 200', '/v1/track 200', '/evicting 503', '/silent 503'],
    never: ['/evicting 200', '/silent 200'],
    run: (target, signal, counts) =>
      withPosts(target, 40, counts, (post) =>
        inParallel(paths.length * 4, signal, async (worker) => {
          const path = paths[worker % paths.length] as string
          const message = { ...fixtures.track, messageId: randomUUID() }
          const call = { headers: { ...JSON_TYPE, ...basicAuth(target.writeKey) }, body: JSON.stringify(message) }
          const { headers, body } = path === '/v1/track' ? call : signedRequest(message, target.secret)
          if ((await post({ path, headers, body }, `${path} `)) === 200) accepted.add(message.messageId)
          await wait(50)
        }),
      ),
  }
}

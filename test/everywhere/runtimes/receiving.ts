/** What holds for receivers on every server, seen by a client on a socket. */

import { deflateSync, gzipSync } from 'node:zlib'
import { beforeAll, expect } from 'vitest'
import { fixtures, signedRequest } from '../../../src/testing.ts'
import { basic } from '../../support/collect.ts'
import { until } from '../../support/until.ts'
import { type Client, clientOfHttp1, type Wire } from '../../support/wire.ts'
import { check, type Row } from './table.ts'

const SECRET = 'everywhere'
const KB = 1024
const SENDER_MS = 5_000

interface Seen {
  readonly handled: readonly string[]
  readonly errors: readonly string[]
}

export function checkReceiving(row: Row, column: string, start: () => Promise<number>): { client(): Client } {
  let client: Client
  beforeAll(async () => {
    client = clientOfHttp1(await start())
  })
  const test = (name: string, run: () => Promise<void>): void => check(row, column, name, run)

  const seenAt = async (path: string): Promise<Seen> => {
    const reply = await client.send({ path: '/seen', method: 'GET', headers: {}, chunks: [] })
    return JSON.parse(reply?.text ?? '')[path]
  }

  test('an authentic message is handled, a forged one is not', async () => {
    expect(await post(client, '/inline', 'Authentic')).toEqual([200, undefined])
    expect(await post(client, '/inline', 'Forged', { secret: 'another' })).toEqual([401, 'signature_mismatch'])
    expect(await seenAt('/inline')).toEqual({ handled: ['Authentic'], errors: ['signature_mismatch'] })
  })

  test('a body of 400 KB is handled, one of 600 KB is not', async () => {
    expect(await post(client, '/inline', 'Large', { bytes: 400 * KB })).toEqual([200, undefined])
    expect(await post(client, '/inline', 'Too large', { bytes: 600 * KB })).toEqual([413, 'body_too_large'])
    expect(await seenAt('/inline')).toMatchObject({ handled: ['Authentic', 'Large'] })
  })

  test('each message of a batch is handled, and none of a forged one', async () => {
    const [one, other] = ['One', 'Other'].map((event) => ({ ...fixtures.track, event }))
    const { body, headers } = signedRequest([one, other], SECRET)
    const requests = [body, body.replace('One', 'Two')].map((text) => ({
      path: '/batches',
      headers: { ...headers },
      chunks: [Buffer.from(text)],
    }))
    const replies = await Promise.all(requests.map((wire) => client.send(wire)))
    expect(replies.map((reply) => reply?.status)).toEqual([200, 401])
    expect(await seenAt('/batches')).toEqual({ handled: ['One', 'Other'], errors: ['signature_mismatch'] })
  })

  test('a secret of a provider, for requests at once', async () => {
    const replies = await Promise.all(['One', 'Two', 'Three'].map((event) => post(client, '/provider', event)))
    expect(replies).toEqual(Array(3).fill([200, undefined]))
  })

  test('an upload that the client aborts is not handled', async () => {
    expect(await post(client, '/aborted', 'Aborted', { half: 'abort' })).toEqual([undefined, undefined])
    await until(async () => (await seenAt('/aborted')).errors.length > 0)
    expect(await seenAt('/aborted')).toEqual({ handled: [], errors: ['body_aborted'] })
  })

  test('an upload that stops is answered at the deadline', async () => {
    const started = performance.now()
    expect(await post(client, '/deadline', 'Half', { half: 'nothing' })).toEqual([503, 'body_timeout'])
    expect(performance.now() - started).toBeLessThan(SENDER_MS)
  })

  test('a handler that hangs is answered at the deadline, also after one that was in time', async () => {
    expect(await post(client, '/deadline', 'Wait')).toEqual([200, undefined])
    for (let time = 0; time < 2; time += 1) {
      const started = performance.now()
      expect(await post(client, '/deadline', 'Hang')).toEqual([503, 'handler_timeout'])
      expect(performance.now() - started).toBeLessThan(SENDER_MS)
    }
  })

  test('a copy is answered 200 and not handled again', async () => {
    expect(await post(client, '/dedupe', 'Once')).toEqual([200, undefined])
    expect(await post(client, '/dedupe', 'Once')).toEqual([200, undefined])
    expect(await seenAt('/dedupe')).toEqual({ handled: ['Once'], errors: [] })
  })

  check(
    'collect',
    column,
    'a batch is collected, compressed or not, but none that inflates beyond the limit',
    async () => {
      const batch = (event: string) => JSON.stringify({ batch: [{ type: 'track', userId: 'user-1', event }] })
      expect(await collect(client, Buffer.from(batch('Plain')))).toBe(200)
      expect(await collect(client, gzipSync(batch('Gzip')), 'gzip')).toBe(200)
      expect(await collect(client, deflateSync(batch('Deflate')), 'deflate')).toBe(200)
      expect(await collect(client, gzipSync(Buffer.alloc(50 * 1024 * KB)), 'gzip')).toBe(413)
      expect(await collect(client, Buffer.concat([deflateSync(batch('More')), Buffer.of(0)]), 'deflate')).toBe(400)
      expect(await seenAt('/v1/batch')).toEqual({
        handled: ['Plain', 'Gzip', 'Deflate'],
        errors: ['body_too_large', 'content_encoding_invalid'],
      })
    },
  )

  return { client: () => client }
}

interface PostOptions {
  readonly secret?: string
  readonly bytes?: number
  readonly half?: Wire['ending']
}

export async function post({ send }: Client, path: string, event: string, options: PostOptions = {}) {
  const { secret = SECRET, bytes = 0, half } = options
  const message = { ...fixtures.track, event, properties: { filler: 'x'.repeat(bytes) } }
  const { body, headers } = signedRequest(JSON.stringify(message), secret) // The same bytes are a copy.
  const whole = Buffer.from(body)
  const reply = await send({
    path,
    headers: { ...headers },
    chunks: [half === undefined ? whole : whole.subarray(0, whole.length / 2)],
    contentLength: whole.length,
    ...(half !== undefined && { ending: half }),
  })
  const code: unknown = reply === undefined || reply.status === 200 ? undefined : JSON.parse(reply.text).code
  return [reply?.status, code]
}

async function collect({ send }: Client, bytes: Buffer, encoding?: string): Promise<number | undefined> {
  const coding = encoding === undefined ? {} : { 'content-encoding': encoding }
  const headers = { 'content-type': 'application/json', authorization: basic('write-key'), ...coding }
  return (await send({ path: '/v1/batch', headers, chunks: [bytes] }))?.status
}

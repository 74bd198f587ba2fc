/** `--ui` of `hookline listen` and `hookline queue`: the page of the inspector, on a port of this machine. */

import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import http from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createReceiver } from '../../../src/index.ts'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { signedRequest } from '../../../src/testing/signed-request.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import type { DeadLetters, Detail, Row, StreamEvents } from '../../inspector/src/wire.ts'
import { createStore } from '../src/request-store.ts'
import { hookline, listenHere, type Running, start } from './command.ts'
import { keptRequest } from './kept-request.ts'

const folder = await mkdtemp(join(tmpdir(), 'hookline-cli-page-'))
const secret = 'a secret'

afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

describe('hookline queue --ui', () => {
  it('serves the dead letters, and redrives them, to who has the URL alone', needs('POSIX'), async () => {
    const path = join(folder, 'inbox.sqlite')
    await addDeadLetter(path)
    const { get, post, url, end } = await openPage(['queue', path, '--ui', '--json'])

    expect((await fetch(url.replace(/#.*/, 'api/setup'))).status).toBe(403)
    expect(await statusFrom(url, 'rebound.example')).toBe(403)
    expect(await statusFrom(url, new URL(url).host)).toBe(200)

    expect(await get('setup')).toMatchObject({
      access: 'write',
      command: 'queue',
      parts: [{ name: 'inbox', kind: 'queue', hasQueue: true }],
    })
    const { groups, letters } = await get<DeadLetters>('dead-letters?part=inbox')
    expect(groups).toMatchObject([{ reason: 'handler_failed', count: 1 }])
    expect(await post('redrive', { part: 'inbox', ids: [letters[0]?.id], dryRun: false })).toMatchObject({ count: 1 })

    expect(await end()).toMatchObject({ code: 0, stdout: '' })
    const { stdout } = await hookline(['queue', path, '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ waiting: 1, deadLetters: 0 })
  })

  it('refuses another action beside it, a port that is taken, and a queue that is not there: with one sentence', async () => {
    const { port } = new URL(await listenHere(http.createServer()))
    const path = join(folder, 'other.sqlite')
    await addDeadLetter(path)

    const refusal = async (args: readonly string[]) => {
      const { code, stderr } = await hookline(args)
      expect(code).toBe(2)
      return stderr
    }
    expect(await refusal(['queue', path, 'dead', '--ui'])).toBe('error: --ui is for counts. Got dead.\n')
    const taken = `error: --ui must be free. Got port ${port} of 127.0.0.1, which is in use. Pass another one.\n`
    expect(await refusal(['queue', path, '--ui', port])).toBe(taken)
    const store = join(folder, 'taken.sqlite')
    expect(await refusal(['listen', '--port', '0', '--store', store, '--ui', port])).toBe(taken)
    expect(await refusal(['queue', join(folder, 'missing.sqlite'), '--ui'])).toContain('it does not exist')
  })
})

describe('hookline listen --ui', () => {
  it(
    'shows the requests that are kept and those that come, and says why a signature was refused',
    needs('POSIX'),
    async () => {
      const store = join(folder, 'listen.sqlite')
      const kept = createStore(store)
      kept.append(
        keptRequest('1a2b00000001', { verification: 'unchecked', message: { type: 'group', name: 'group-1' } }),
      )
      kept.close()
      const { get, rows, printed, end } = await openPage(['listen', '--port', '0', '--store', store, '--ui'], {
        env: { HOOKLINE_SECRET: secret },
      })
      await until(() => /Listening on (\S+),/.test(printed.stderr))
      const [, endpoint = ''] = /Listening on (\S+),/.exec(printed.stderr) ?? []
      const { body, headers } = signedRequest(fixtures.track, secret)
      await fetch(`${endpoint}/webhooks?token=t0ken`, { method: 'POST', body, headers })
      await fetch(endpoint, {
        method: 'POST',
        body: `${body}\n`,
        headers: { ...headers, authorization: 'Bearer s3cret' },
      })

      const [mismatched, verified, old] = await rows(3)
      expect(old).toMatchObject({ type: 'group', name: 'group-1', state: 'done', status: 200 })
      expect(verified).toMatchObject({ part: 'listen', kind: 'received', type: 'track', state: 'done', user: 'user-1' })
      expect(mismatched).toMatchObject({ state: 'refused', status: 401, code: 'signature_mismatch' })

      const detail = await get<Detail>(`message?id=${verified?.id}`)
      expect(detail).toMatchObject({ request: { method: 'POST', path: '/webhooks?…' }, body: { text: body } })
      expect(detail.steps.map(({ what }) => what)).toEqual(['arrived', 'checked', 'answered'])
      const unchecked = await get<Detail>(`message?id=${old?.id}`)
      expect(unchecked.steps.map(({ what }) => what)).toEqual(['arrived', 'unchecked', 'answered'])
      const refused = await get<Detail>(`message?id=${mismatched?.id}`)
      expect(refused.canExplain).toBe(true)
      expect(JSON.stringify(refused)).not.toContain('s3cret')
      expect(await get(`explanation?id=${mismatched?.id}`)).toMatchObject({
        message: expect.stringContaining('The body must be the bytes that were signed.'),
      })
      expect(await get('setup')).toMatchObject({ command: 'listen', parts: [{ name: 'listen', hasQueue: false }] })
      expect(await end()).toMatchObject({ code: 0 })
    },
  )
})

/** Leaves a dead letter in an inbox, and nothing that works on it. */
async function addDeadLetter(path: string): Promise<void> {
  const queue = sqliteQueue({ path, name: 'inbox' })
  const receiver = createReceiver({ secret, inbox: { queue, retries: [] }, onError: () => {} })
  receiver.on('track', () => {
    throw new Error('The payment provider answered 503')
  })
  receiver.start()
  const { bytes, headers } = signedRequest(fixtures.track, secret)
  await receiver.receive(bytes, headers)
  await until(async () => (await receiver.deadLetters()).length === 1)
  await receiver.close()
}

async function statusFrom(url: string, host: string): Promise<number | undefined> {
  const [response] = await once(http.get(url, { headers: { host } }), 'response')
  response.resume()
  return response.statusCode
}

/** The page that the command serves, as a browser asks for it. */
async function openPage(args: readonly string[], running?: Running) {
  const { child, printed, ended } = await start(args, running)
  await until(() => /token=\S+\n/.test(printed.stderr))
  const [url = ''] = /http\S+token=\S+/.exec(printed.stderr) ?? []
  const own = { 'x-hookline-inspector': url.replace(/.*#token=/, '') }
  const at = (path: string) => new URL(`api/${path}`, url)

  return {
    url,
    printed,
    get: async <Answer>(path: string) => (await (await fetch(at(path), { headers: own })).json()) as Answer,
    async post(path: string, body: unknown) {
      const headers = { ...own, 'content-type': 'application/json' }
      return await (await fetch(at(path), { method: 'POST', headers, body: JSON.stringify(body) })).json()
    },
    /** The newest first, once they are so many. */
    async rows(count: number): Promise<readonly Row[]> {
      const { body } = await fetch(at('stream'), { headers: own })
      const found = new Map<number, Row>()
      let text = ''
      for await (const chunk of body ?? []) {
        text += Buffer.from(chunk).toString()
        for (const [, data = ''] of text.matchAll(/^event: rows\n(?:id: .*\n)?data: (.*)$/gm)) {
          for (const row of (JSON.parse(data) as StreamEvents['rows']).rows) found.set(row.id, row)
        }
        if (found.size >= count) break
      }
      return [...found.values()].sort((one, other) => other.id - one.id)
    },
    end() {
      child.kill('SIGINT')
      return ended
    },
  }
}

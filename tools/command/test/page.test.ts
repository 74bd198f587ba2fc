/** `--ui` of `hookline listen` and `hookline queue`: the page of the inspector, on a port of this machine. */

import { join } from 'node:path'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { fixtures, signedRequest } from 'hookline/testing'
import { expect, it } from 'vitest'
import { until } from '../../../test/support/until.ts'
import type { DeadLetters, Detail } from '../../inspector/src/wire.ts'
import { createStore } from '../src/request-store.ts'
import { createFolder, hookline, type Running, start, urlOf } from './command.ts'
import { fillInbox } from './inbox.ts'
import { keptRequest } from './kept-request.ts'

const secret = 'a secret'

it('of a queue serves its dead letters, and redrives them, to who has the URL alone', async () => {
  const path = join(await createFolder(), 'inbox.sqlite')
  await fillInbox(() => sqliteQueue({ path, name: 'inbox' }))
  const { get, post, url, end } = await openPage(['queue', path, '--ui', '--json'])

  expect((await fetch(url.replace(/#.*/, 'api/setup'))).status).toBe(403)
  const parts = [{ name: 'inbox', kind: 'queue', hasQueue: true }]
  expect(await get('setup')).toMatchObject({ access: 'write', command: 'queue', parts })
  const { letters } = await get<DeadLetters>('dead-letters?part=inbox')
  expect(await post('redrive', { part: 'inbox', ids: [letters[0]?.id], dryRun: false })).toMatchObject({ count: 1 })

  expect(await end()).toMatchObject({ code: 0, stdout: '' })
  const { stdout } = await hookline(['queue', path, '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ waiting: 2, deadLetters: 2 })
})

it('of listen shows the requests that are kept and those that come, and why a signature was refused', async () => {
  const store = join(await createFolder(), 'listen.sqlite')
  const kept = createStore(store)
  const body = Buffer.from(JSON.stringify(fixtures.group))
  const message = { type: 'group', name: 'group-1', fault: 'No.' }
  kept.append(keptRequest('1a2b00000001', { body, verification: 'unchecked', message }))
  kept.close()
  const args = ['listen', '--port', '0', '--store', store, '--ui']
  const { get, printed, end } = await openPage(args, { env: { HOOKLINE_SECRET: secret } })
  const endpoint = await urlOf({ printed })
  const { body: text, headers } = signedRequest(fixtures.track, secret)

  await fetch(`${endpoint}?token=t0ken`, { method: 'POST', body: text, headers })
  const forged = { method: 'POST', body: `${text}\n`, headers: { ...headers, authorization: 'Bearer s3cret' } }
  await fetch(endpoint, forged)

  await until(async () => (await get<Partial<Detail>>('message?id=3')).row !== undefined)
  const details = await Promise.all([1, 2, 3].map((id) => get<Detail>(`message?id=${id}`)))
  const group = { row: { type: 'group', name: 'group-1', state: 'done', status: 200 } }
  const track = { part: 'listen', kind: 'received', type: 'track', name: 'Order Completed', user: 'user-1' }
  const refusal = { ...track, state: 'refused', status: 401, code: 'signature_mismatch' }
  const request = { method: 'POST', path: '/webhooks?…' }
  const accepted = { row: { ...track, state: 'done', status: 200 }, request, body: { text } }
  expect(details).toMatchObject([group, accepted, { row: refusal, canExplain: true }])
  const steps = details.map((each) =>
    each.steps.map((step) => ('error' in step ? step.error?.code : step.what)).join(' '),
  )
  expect(steps).toEqual(['arrived unchecked no_message', 'arrived checked answered', 'arrived signature_mismatch'])
  expect(JSON.stringify(details)).not.toContain('s3cret')
  const explanation = await get<{ message: string }>(`explanation?id=3`)
  expect(explanation.message).toContain('line break')
  expect(await get('events')).toMatchObject([{ events: [{ type: 'track', count: 1 }] }])
  expect(await get('setup')).toMatchObject({ command: 'listen', parts: [{ name: 'listen', hasQueue: false }] })
  expect(await end()).toMatchObject({ code: 0 })
})

async function openPage(args: readonly string[], running?: Running) {
  const { interrupt, printed, ended } = await start(args, running)
  await until(() => /token=\S+\n/.test(printed.stderr))
  const [url = ''] = /http\S+token=\S+/.exec(printed.stderr) ?? []
  const own = { 'x-hookline-inspector': url.replace(/.*#token=/, '') }
  const at = (path: string) => new URL(`api/${path}`, url)

  return {
    ...{ url, printed },
    get: async <Answer>(path: string) => (await (await fetch(at(path), { headers: own })).json()) as Answer,
    async post(path: string, body: unknown) {
      const headers = { ...own, 'content-type': 'application/json' }
      return await (await fetch(at(path), { method: 'POST', headers, body: JSON.stringify(body) })).json()
    },
    end() {
      interrupt()
      return ended
    },
  }
}

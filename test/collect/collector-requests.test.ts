import { describe, expect, it, vi } from 'vitest'
import { createCollector } from '../../src/collect/create-collector.ts'
import { systemClock } from '../../src/kit/clock.ts'
import { CALL_LIMIT } from '../../src/protocol/limits.ts'
import { basic, recorder, request, setUpCollector, writeKey } from '../support/collect.ts'

const page = { type: 'page', userId: 'user-1' }
const json = { 'content-type': 'application/json' }

describe('routes', () => {
  const call = { userId: 'u', event: 'Sold', groupId: 'g', previousId: 'p' }
  const types = ['identify', 'track', 'page', 'screen', 'group', 'alias']
  const paths = types.flatMap((type) => [`/v1/${type}`, `/v1/${type[0]}`].map((path) => [path, type] as const))

  it('are listed', () => {
    const { collector } = setUpCollector()
    const batches = ['/v1/batch', '/v1/b', '/v1/import']
    expect([...collector.routes].sort()).toEqual([...batches, ...paths.map(([path]) => path)].sort())
  })

  it.each(paths)('%s takes one %s', async (path, type) => {
    const { post, destination } = setUpCollector()
    const answer = await post(path, call)
    expect([answer.status, answer.json]).toEqual([200, { success: true, accepted: 1, refused: [] }])
    expect(destination.messages).toMatchObject([{ type, userId: 'u' }])
    expect((await post(path, { ...call, type })).status).toBe(200)
  })

  it.each(['identify', 'delete', 5, null])('/v1/track refuses a call of type %j', async (type) => {
    const { post } = setUpCollector()
    const answer = await post('/v1/track', { ...page, event: 'Sold', type })
    expect(answer.json).toMatchObject({ status: 400, code: 'call_invalid', path: 'type' })
  })

  it.each(['/v1/b', '/v1/import'])('%s takes a batch', async (path) => {
    const { post, destination } = setUpCollector()
    expect((await post(path, { batch: [page, page] })).json.accepted).toBe(2)
    expect(destination.messages).toHaveLength(2)
  })
})

describe('the write key', () => {
  const shop = recorder()
  const app = recorder()
  const collector = createCollector({
    sources: [
      { name: 'shop', writeKey: 'key of the shop', destinations: [shop] },
      { name: 'app', writeKey: 'key of the app', destinations: [app] },
    ],
    onError: () => {},
  })
  async function send(headers: object, body: object, path = '/v1/batch') {
    const answer = await collector.handle(request(path, body, { headers: { ...json, ...headers } }))
    const { code } = JSON.parse(answer?.body ?? '')
    const to = [...shop.messages.splice(0).map(() => 'shop'), ...app.messages.splice(0).map(() => 'app')]
    return code ?? to.join()
  }

  const [shopKey, appKey] = ['key of the shop', 'key of the app']
  it.each<[string, object, object, string]>([
    ['Basic, empty password', { authorization: basic(appKey) }, {}, 'app'],
    ['Basic without a colon', { authorization: `basic ${btoa(appKey)}` }, {}, 'app'],
    ['in the body', {}, { writeKey: shopKey }, 'shop'],
    ['both: the header decides', { authorization: basic(appKey) }, { writeKey: shopKey }, 'app'],
    ['an empty user name: the body decides', { authorization: basic('') }, { writeKey: shopKey }, 'shop'],
    ['none', {}, {}, 'write_key_missing'],
    ['no text', {}, { writeKey: [shopKey] }, 'write_key_missing'],
    ['in a call of a batch alone', {}, { batch: [{ ...page, writeKey: appKey }] }, 'write_key_missing'],
    ['unknown', {}, { writeKey: 'key of the sho' }, 'write_key_unknown'],
    ['unknown, in Basic', { authorization: basic('__proto__') }, { writeKey: shopKey }, 'write_key_unknown'],
  ])('%s', async (_how, headers, body, outcome) => {
    expect(await send(headers, { batch: [page], ...body })).toBe(outcome)
    expect(await send(headers, { userId: 'u', ...body }, '/v1/page')).toBe(outcome)
  })

  it.each([
    ['missing', {}, 'write_key_missing'],
    ['unknown', { writeKey: 'a guess' }, 'write_key_unknown'],
  ])('%s in the body decides before the body is parsed', async (_how, body, code) => {
    const { collector } = setUpCollector()
    const parse = vi.spyOn(JSON, 'parse')
    const long = { batch: Array(1_000).fill([[]]), ...body }
    const answer = await collector.handle(request('/v1/batch', long, { headers: json }))
    const longest = Math.max(0, ...parse.mock.calls.map(([text]) => text.length))
    parse.mockRestore()
    expect([JSON.parse(answer?.body ?? '').code, longest < 20]).toEqual([code, true])
  })

  it.each(['clé 鍵', 'with a space', '__proto__', 'constructor'])('may be %j', async (key) => {
    const { collector, destination, post } = setUpCollector()
    collector.update({ sources: [{ name: '__proto__', writeKey: key, destinations: [destination] }] })
    const inHeader = await post('/v1/page', page, { headers: { ...json, authorization: basic(key) } })
    const inBody = await post('/v1/page', { ...page, writeKey: key }, { headers: json })
    expect([inHeader.status, inBody.status]).toEqual([200, 200])
    expect(await collector.delete('u')).toEqual([{ source: '__proto__', queued: 1 }])
  })
})

describe('the answer to a batch', () => {
  it('lists what is refused, and takes the rest', async () => {
    const { post, destination } = setUpCollector()
    const huge = { ...page, messageId: 'huge', properties: { text: 'x'.repeat(CALL_LIMIT) } }
    const invalid = [{ type: 'track', userId: 'u', messageId: 'm' }, 5, { ...page, messageId: 7, type: 'x' }, huge]

    const { status, json } = await post('/v1/batch', { batch: [page, ...invalid, page] })

    expect(status).toBe(200)
    expect(json).toEqual({
      success: true,
      accepted: 2,
      refused: [
        { index: 1, messageId: 'm', code: 'call_invalid', path: 'event', detail: expect.stringContaining('event') },
        { index: 2, code: 'call_invalid', detail: expect.any(String) },
        { index: 3, code: 'message_type_unknown', path: 'type', detail: expect.stringContaining('identify, track') },
        { index: 4, messageId: 'huge', code: 'call_too_large', detail: expect.stringContaining('32768') },
      ],
    })
    expect([destination.submits, destination.messages.length]).toEqual([1, 2])
  })

  it.each([[{}], [{ batch: null }], [{ batch: {} }], [{ batch: 'x' }]])('refuses %j whole', async (body) => {
    const { post } = setUpCollector()
    expect((await post('/v1/batch', body)).json).toMatchObject({ status: 400, code: 'call_invalid', path: 'batch' })
  })
})

describe('Limits', () => {
  const sized = (bytes: number, call: object = page) => {
    const empty = Buffer.byteLength(JSON.stringify({ ...call, name: '' }))
    return { ...call, name: 'é'.repeat(Math.floor((bytes - empty) / 2)) + 'x'.repeat((bytes - empty) % 2) }
  }

  it.each([
    ['of 32 KB is taken', CALL_LIMIT, 1],
    ['of a byte more is not', CALL_LIMIT + 1, 0],
  ])('one call %s', async (_what, bytes, accepted) => {
    const { post } = setUpCollector()

    for (const also of [{}, { sentAt: 5, _metadata: { a: 'é' } }]) {
      const call = sized(bytes, { ...page, ...also })
      expect(Buffer.byteLength(JSON.stringify(call))).toBe(bytes)
      const refused = accepted === 1 ? [] : [{ code: 'call_too_large' }]
      expect((await post('/v1/batch', { batch: [call] })).json).toMatchObject({ accepted, refused })
    }

    const single = await post('/v1/page', sized(bytes))
    expect([single.status, single.json.code]).toEqual(accepted === 1 ? [200, undefined] : [413, 'call_too_large'])
  })

  it('one call: what the batch adds to it counts', async () => {
    const { post } = setUpCollector()
    const { json } = await post('/v1/batch', { batch: [sized(CALL_LIMIT), page], context: { a: 1 } })
    expect([json.accepted, json.refused[0].code]).toEqual([1, 'call_too_large'])
  })

  it('one batch request is read up to 500 KB', async () => {
    const { post } = setUpCollector()
    const readBody = vi.fn(() => ({ bytes: Buffer.from('{}'), source: 'stream' as const }))
    for (const path of ['/v1/batch', '/v1/page']) await post(path, '', { readBody })
    expect(readBody.mock.calls).toEqual([[512_000], [512_000]])
  })

  it('a list of more than can be calls is refused whole', async () => {
    const { post } = setUpCollector()
    const list = (length: number) => ({ batch: Array.from({ length }, () => 0) })
    expect((await post('/v1/batch', list(20_000))).json.refusedCount).toBe(20_000)
    const refused = { status: 400, code: 'call_invalid', path: 'batch' }
    expect((await post('/v1/batch', list(20_001))).json).toMatchObject(refused)
  })

  it('from the next refused call on, the rest of the batch is refused together', async () => {
    const { post, destination } = setUpCollector()
    const batch = [page, ...Array.from({ length: 501 }, () => 0), page, 0]
    const { json } = await post('/v1/batch', { batch })
    expect([json.accepted, json.refused.length, json.refusedCount]).toEqual([1, 501, 503])
    const detail = expect.any(String)
    expect(json.refused[500]).toEqual({ index: 501, count: 3, code: 'too_many_refused', detail })
    expect(destination.messages).toHaveLength(1)
  })

  it('a context and integrations that would be multiplied are refused whole', async () => {
    const { post } = setUpCollector()
    const fields = { context: { text: 'x'.repeat(10_000) }, integrations: { text: 'x'.repeat(10_000) } }
    const list = (length: number) => ({ ...fields, batch: Array.from({ length }, () => page) })
    expect((await post('/v1/batch', list(100))).json.accepted).toBe(100)
    const tooLarge = { status: 413, code: 'call_too_large', path: 'integrations' }
    expect((await post('/v1/batch', list(110))).json).toMatchObject(tooLarge)
  })

  it.each([
    ['as deep as it may', 498, 1],
    ['a level deeper', 499, 0],
    ['deeper than the stack', 16_000, 0],
  ])('a call nested %s', async (_how, levels, accepted) => {
    const { post } = setUpCollector()
    const deep = `${'['.repeat(levels)}${']'.repeat(levels)}`
    const body = `{"batch":[{"type":"page","userId":"u","properties":{"a":${deep}}}]}`
    const { json } = await post('/v1/batch', body)
    expect(json).toMatchObject({ accepted, refused: accepted === 1 ? [] : [{ code: 'call_invalid' }] })
  })

  const deepest = '['.repeat(250_000) + ']'.repeat(250_000)
  it.each([
    ['the body', deepest, 'body_not_json'],
    ['the context', `{"batch":[],"context":{"a":${deepest}}}`, 'call_invalid'],
    ['the write key', `{"batch":[],"writeKey":${deepest}}`, undefined],
  ])('%s nested 250 000 deep', async (_what, body, code) => {
    const { post, errors } = setUpCollector()
    expect((await post('/v1/batch', body)).json.code).toBe(code)
    expect(errors.map((error) => error.code)).toEqual(code === undefined ? [] : [code])
  })
})

describe('media types', () => {
  const types = ['application/json; charset=utf-8', 'Text/Plain;charset=UTF-8', 'application/x-www-form-urlencoded']
  it.each(types)('takes JSON as %s', async (type) => {
    const { post, destination } = setUpCollector()
    expect((await post('/v1/p', { userId: 'u', writeKey }, { headers: { 'content-type': type } })).status).toBe(200)
    expect(destination.messages).toHaveLength(1)
  })

  it.each(['multipart/form-data', 'application/json5', undefined])('refuses %j', async (type) => {
    const { post } = setUpCollector()
    const { json } = await post('/v1/p', { userId: 'u', writeKey }, { headers: { 'content-type': type } })
    expect(json).toMatchObject({ code: 'content_type_unsupported', detail: expect.stringContaining('text/plain') })
  })
})

it('CORS lets any page ask, and read the answer', async () => {
  const { post, errors } = setUpCollector()
  const preflight = await post('/v1/p', '', { method: 'OPTIONS', headers: { origin: 'https://shop.example' } })
  expect(preflight).toMatchObject({ status: 200, body: '' })
  expect(preflight.headers).toEqual({
    'access-control-allow-origin': '*',
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': '*, authorization',
    'access-control-max-age': '86400',
  })
  expect((await post('/v1/p', { userId: 'u' })).headers).toEqual({
    'content-type': 'application/json',
    'access-control-allow-origin': '*',
  })
  expect(errors).toEqual([])
})

describe('hostile bodies', () => {
  it('keys that reach a prototype are dropped, at any depth', async () => {
    const { post, destination } = setUpCollector()
    const call =
      '{"type":"page","userId":"u","traits":{"__proto__":{"polluted":1},"a":[{"\\u005f_proto__":{"polluted":1}}]},' +
      '"constructor":{"prototype":{"polluted":1}},"context":{"__proto__":{"ip":"6.6.6.6"}}}'
    expect((await post('/v1/batch', `{"batch":[${call}],"__proto__":{"writeKey":"x"}}`)).json.accepted).toBe(1)
    expect(JSON.stringify(destination.messages)).not.toContain('polluted')
    expect(destination.messages[0]).toMatchObject({ properties: { a: [{}] }, context: { ip: '192.0.2.1' } })
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false)
  })

  it('an answer quotes nothing but a messageId and an unknown type', async () => {
    const { post } = setUpCollector()
    const secret = 'hunter2'
    expect((await post('/v1/batch', `{"password":"${secret}" x`)).body).not.toContain(secret)
    const call = { type: 'purchase', event: secret, userId: secret, context: secret, timestamp: secret }
    expect((await post('/v1/batch', { batch: [call, { ...call, type: 'track' }, secret] })).body).not.toContain(secret)
  })
})

it('a body that has arrived keeps the process alive no longer', async () => {
  const timeouts = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
  const before = timeouts()
  const { post } = setUpCollector({ clock: systemClock })
  await post('/v1/page', page)
  expect(timeouts()).toBeLessThanOrEqual(before) // One of another test may end meanwhile.
})

it('a body that comes after its deadline changes nothing', async () => {
  const { post, clock, errors, destination } = setUpCollector({ deadlineMs: 1000 })
  const body = Promise.withResolvers<never>()
  const answered = post('/v1/page', '', { readBody: () => body.promise })

  await clock.advance(999)
  expect(errors).toEqual([])
  await clock.advance(1)
  expect((await answered).json.code).toBe('body_timeout')

  body.resolve(request('', page).readBody(0) as never)
  await clock.advance(1)
  expect([errors.length, destination.messages]).toEqual([1, []])
})

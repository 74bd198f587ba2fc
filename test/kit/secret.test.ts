import { afterEach, expect, it, vi } from 'vitest'
import { createClient } from '../../src/client.ts'
import { createCollector } from '../../src/collector.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'

const warn = vi.spyOn(process, 'emitWarning').mockImplementation(() => {})
afterEach(() => void warn.mockClear())

const webhooks = [{ url: 'http://127.0.0.1:9/' }]

it.each([
  ['createSender', createSender],
  ['createDestination', createDestination],
] as const)(
  '%s warns of a shared secret that looks as if it was read wrongly, as a receiver does',
  async (_name, create) => {
    const closing = [create({ webhooks, sharedSecret: 's3cret\n' }), create({ webhooks, sharedSecret: 's3cret' })]
    await Promise.all(closing.map((each) => each.close()))
    expect(warn.mock.calls).toEqual([[expect.stringContaining('`sharedSecret`'), { code: 'HOOKLINE_SECRET' }]])
  },
)

it('a client and a collector warn of such a write key, a collector not again at an update', async () => {
  const sources = [{ name: 'shop', writeKey: '"key"', destinations: [] }]
  const client = createClient(' key', { endpoint: 'http://127.0.0.1:9/v1/batch' })
  createCollector({ sources }).update({ sources })
  await client.close()
  const names = warn.mock.calls.map(([text]) => String(text).split(' is used')[0])
  expect(names).toEqual(['`writeKey`', '`sources[0].writeKey`'])
})

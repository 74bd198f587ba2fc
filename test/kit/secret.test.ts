import { expect, it } from 'vitest'
import { createClient } from '../../src/client.ts'
import { createCollector } from '../../src/collector.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import { createSender } from '../../src/send/create-sender.ts'
import { watchWarnings } from '../support/receive.ts'

it('a secret that looks as if it was read wrongly is warned about, by a collector not again at an update', async () => {
  const warn = watchWarnings()
  const url = 'http://127.0.0.1:9/'
  const sources = [{ name: 'shop', writeKey: '"key"', destinations: [] }]

  createCollector({ sources }).update({ sources })
  await createClient(' key', { endpoint: url }).close()
  await createSender({ webhooks: [{ url }], sharedSecret: 's3cret\n' }).close()
  await createDestination({ webhooks: [{ url }], sharedSecret: 's3cret\n' }).close()

  const names = warn.mock.calls.map(([text]) => String(text).split(' is used')[0])
  expect(names).toEqual(['`sources[0].writeKey`', '`writeKey`', '`sharedSecret`', '`sharedSecret`'])
  expect(warn.mock.calls.join()).not.toContain('s3cret')
})

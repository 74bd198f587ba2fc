/** Statuses without a body, over Web Fetch. */

import { expect, it } from 'vitest'
import { serve } from '../../adapters/fetch.ts'

it.each([204, 205, 304])('%i is answered without its body', async (status) => {
  const answer = { status, headers: { 'content-type': 'text/plain' }, body: 'a body' }
  const handler = serve({ handle: async () => answer })
  const response = await handler(new Request('http://localhost/'))
  expect([response.status, await response.text()]).toEqual([status, ''])
})

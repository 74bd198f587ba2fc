/** The server is killed and comes back, while its page is open. */

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import { track } from './messages.ts'
import { test } from './test.ts'

test('a page whose server was killed says so, and goes on by itself when it is back', async ({ start, open }) => {
  const data = mkdtempSync(join(inject('directory'), 'data-'))
  onTestFinished(() => rmSync(data, { recursive: true, force: true }))
  const token = 'the-token-of-the-app-0123456789-abc'
  const first = await start({ token, data })
  const { page, faults } = await open(first)
  await first.post(track('Order Completed', { userId: 'before-the-end' }))
  await page.getByText('before-the-end').first().waitFor()

  await first.kill()
  const banner = page.getByText('Connection lost')
  await banner.waitFor()

  const port = Number(new URL(first.origin).port)
  const second = await start({ token, data, port })
  await banner.waitFor({ state: 'detached' })
  await second.post(track('Order Completed', { userId: 'after-the-start' }))
  await page.getByText('after-the-start').first().waitFor()
  expect(faults.filter((fault) => !LOST.test(fault))).toEqual([])
  faults.length = 0
})

const LOST = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/

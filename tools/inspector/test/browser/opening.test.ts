/** The page in Chromium: access, and a server that does not respond. */

import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, inject, onTestFinished } from 'vitest'
import { goToView, message, rows, test, track } from './test.ts'

test('the URL with the token opens the page, and the token leaves the address bar', async ({ start, open }) => {
  const app = await start()
  const { page } = await open()
  const response = await page.goto(app.url)
  expect(response?.status()).toBe(200)
  expect(page.url().split('#')[0]).toBe(`${app.origin}/hookline/`)
  await page.getByRole('heading', { name: 'Messages' }).waitFor()
  expect(page.url()).not.toContain('token')
  expect(await page.context().cookies()).toEqual([])

  await page.reload()
  await page.getByRole('heading', { name: 'Messages' }).waitFor()
  await page.getByText('No messages yet').waitFor()
  expect(await page.evaluate('document.referrer + localStorage.length')).toBe('0')
})

test('without the token, the page says what to do, and goes on with the URL in the same tab', async ({
  start,
  open,
}) => {
  const app = await start()
  const { page, faults } = await open()
  for (const url of [`${app.origin}/hookline`, `${app.origin}/hookline/#token=${'a'.repeat(43)}`]) {
    await page.goto(url)
    await page.getByText('Open the complete URL that the app printed when it started').waitFor()
  }
  await page.goto(app.url)
  await page.getByText('No messages yet').waitFor()
  expect(faults.splice(0).filter((fault) => !fault.includes('403'))).toEqual([])
})

test('who may only look is offered nothing that changes something', async ({ openApp }) => {
  const { app, page } = await openApp({ open: 'read', isManual: true })
  await app.post(track('Order Completed'))
  await app.post(track('Order Completed'), '/inline', 'a wrong secret')
  await app.post('{"type":"track"}')
  await expect.poll(async () => (await app.counts()).deadLetters).toBe(1)
  await page.getByText('read only').waitFor()
  const expectNone = async (...names: readonly string[]): Promise<void> => {
    for (const name of names) {
      for (const role of ['button', 'link'] as const) {
        expect.soft(await page.getByRole(role, { name }).count(), `${role} ${name}`).toBe(0)
      }
    }
  }

  await rows(page).filter({ hasText: 'Order Completed' }).first().click()
  await message(page).getByRole('button', { name: 'Copy body' }).waitFor()
  await expectNone('Send again')
  await goToView(page, 'Dead letters')
  await page.locator('.letter').first().waitFor()
  await page.getByText('Redriving and dropping need write access, but you have read access.').waitFor()
  await expectNone('Redrive', 'Drop')
  expect(await page.getByRole('checkbox').count()).toBe(0)
})

const LOST = /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/

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

/** The list of messages and the message that is open, used as a person does. */

import { expect } from 'vitest'
import { message, rows, test, track } from './test.ts'

test('a call is one row, with each part that it passes', async ({ openApp }) => {
  const { app, page } = await openApp()
  await page.getByText('No messages yet').waitFor()
  await app.record([track('Order Completed', { userId: 'grace' })])
  await expect.poll(() => rows(page).allTextContents()).toEqual([expect.stringMatching(/grace/)])
  await expect
    .poll(() => rows(page).first().textContent())
    .toMatch(/^Handled.*collector: Collected, .*shop: Delivered, app/)
  expect(await rows(page).first().innerText()).toMatch(/\bc\b\s+.*\bs\b\s+.*\bapp\b/s)

  await rows(page).first().click()
  const parts = message(page).locator('section[aria-label] h4')
  await expect
    .poll(() => parts.allTextContents())
    .toEqual(['client', 'collector Collected', 'shop Delivered', 'app Handled'])
  await message(page).getByText("Recorded, by the client's clock").waitFor()
  const timeline = message(page).getByRole('region', { name: 'app' }).getByRole('list')
  const steps = ['Arrived', 'Signature verified: secret 1 matched', 'Stored in the inbox', 'Answered 200', 'Handled']
  for (const step of steps) await timeline.getByText(step).first().waitFor()
  await timeline.getByText('127.0.0.1').first().waitFor()
  await timeline.getByText('count').waitFor()

  await message(page).getByRole('link', { name: 'collector' }).click()
  await message(page).getByText('Collected 1 call').waitFor()
  await expect.poll(() => message(page).locator('h4').count()).toBe(0)
})

test('the filters, the search and the pause say which messages are shown', async ({ openApp }) => {
  const { app, page } = await openApp()
  const sent = { 'Order Completed': 'ada', 'Order Failed': 'grace', 'Order Refunded': 'grace' }
  for (const [event, userId] of Object.entries(sent)) await app.post(track(event, { userId }))
  await app.post(track('Order Completed', { userId: 'mallory' }), '/webhooks', 'a wrong secret')
  await expect.poll(() => rows(page).count()).toBe(4)
  await rows(page).filter({ hasText: 'Dead' }).waitFor()

  const search = page.getByRole('searchbox', { name: 'Search messages' })
  await search.fill('refund')
  await expect.poll(() => rows(page).count()).toBe(1)
  expect(await rows(page).first().innerText()).toContain('Order Refunded')
  await search.fill('')

  await page.getByRole('button', { name: 'Filters' }).click()
  await page.getByLabel('State').selectOption('Dead letter')
  await expect.poll(() => rows(page).allInnerTexts()).toEqual([expect.stringContaining('Order Failed')])
  await page.getByLabel('State').selectOption('Any')
  await page.getByLabel('User').fill('grace')
  await expect.poll(() => rows(page).count()).toBe(2)
  await page.getByLabel('Event').fill('Order Refunded')
  await expect.poll(() => rows(page).count()).toBe(1)
  await page.reload() // The filters are in the URL.
  await expect.poll(() => rows(page).count()).toBe(1)
  await page.getByRole('button', { name: 'Filters' }).click()
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await page.getByLabel('Status').fill('4xx')
  await expect.poll(() => rows(page).allInnerTexts()).toEqual([expect.stringContaining('401')])
  await page.getByRole('button', { name: 'Clear filters' }).click()

  await page.getByRole('button', { name: 'Pause' }).click()
  await app.post(track('Order Shipped'))
  await page.getByText('1 new').waitFor()
  expect(await rows(page).filter({ hasText: 'Order Shipped' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Resume' }).click()
  await rows(page).filter({ hasText: 'Order Shipped' }).waitFor()
})

test('of many rows only what is seen is in the document, down to the last', async ({ openApp }) => {
  const { app, page } = await openApp()
  for (let done = 0; done < 400; done += 100) {
    await Promise.all(Array.from({ length: 100 }, () => app.post(track('Order Failed'), '/inline')))
  }
  await expect.poll(() => page.locator('output.count').innerText()).toMatch(/^400/)
  await page.getByRole('listbox').press('End')
  await expect.poll(() => rows(page).last().innerText()).toContain('Order Failed')
  await expect.poll(() => page.getByRole('option', { selected: true }).getAttribute('aria-posinset')).toBe('400')
  expect(await rows(page).count()).toBeLessThan(100)
  await page.getByRole('button', { name: 'Newest' }).click()
  await expect.poll(() => rows(page).first().getAttribute('aria-posinset')).toBe('1')
})

test('a failing handler: its error comes first, its attempts, its redrive', async ({ openApp }) => {
  const { app, page } = await openApp()
  await app.post(track('Order Failed'))
  await rows(page).filter({ hasText: 'Dead' }).click()
  const steps = ['Handlers failed in', '1 more attempt with', 'Handlers failed, attempt 3', 'Dead letter']
  for (const step of steps) await message(page).getByText(step).first().waitFor()
  await message(page).locator('.timeline').getByText('chargeCard', { exact: true }).first().waitFor()
  const last = message(page).getByRole('region', { name: 'Last error' })
  expect(await last.innerText()).toMatch(/^Error The card was declined\./)
  await last.getByText('Stack').click()
  await last.getByText('app.ts').first().waitFor()
  const { handled } = await app.counts()
  await last.getByRole('button', { name: 'Redrive' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Redrive' }).and(page.locator(':enabled')).click()
  await expect.poll(async () => (await app.counts()).handled).toBeGreaterThan(handled)
  await message(page).getByText('Redriven').waitFor()
  await message(page).getByText('1 more attempt with the same result').first().click()
  await message(page).locator('details .timeline').getByText('Handlers failed, attempt 2').first().waitFor()

  const [timeline, body] = await Promise.all(
    ['Timeline', 'Body'].map((name) => message(page).getByRole('heading', { name }).boundingBox()),
  )
  expect([timeline?.y, (timeline?.x ?? 0) < (body?.x ?? 0)]).toEqual([body?.y, true])
})

test('the copies are what was received, and can be pasted', async ({ openApp }) => {
  const { app, page } = await openApp()
  const sent = track(`it's "here"`, { properties: { note: `$(touch x) \`y\` \\ 'z' \u2028` } })
  await app.post(sent)
  await rows(page).first().click()
  const read = async (name: string): Promise<string> => {
    await message(page).getByRole('button', { name }).click()
    await message(page).getByRole('button', { name: 'Copied' }).first().waitFor()
    return await page.evaluate<string>('navigator.clipboard.readText()')
  }
  expect(await read('Copy body')).toBe(JSON.stringify(sent))
  expect(await read('Copy as curl')).toMatch(/^curl /)
  expect(await read('Copy as test')).toContain('signedRequest(')
})

test('a refused signature is explained when the message is opened', async ({ openApp }) => {
  const { app, page, faults } = await openApp()
  await app.post(track('Order Completed'), '/inline', 'a wrong secret')
  const explained: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('/api/explanation')) explained.push(request.url())
  })
  await rows(page).filter({ hasText: 'Refused' }).waitFor()
  expect(explained).toEqual([])
  await rows(page).filter({ hasText: 'Refused' }).click()
  await message(page).getByText('Why the signature was refused').waitFor()
  await expect.poll(() => message(page).locator('.reason').innerText()).toMatch(/secret/i)
  expect(await page.content()).not.toContain('the secret of the app')
  expect(faults).toEqual([])
})

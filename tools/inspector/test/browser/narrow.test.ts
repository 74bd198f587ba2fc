/** What a phone shows of the page: nothing leaves its box, and nothing that is needed is cut off. */

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { findSpilt, findViolations, measureOverflow } from './axe.ts'
import { track } from './messages.ts'
import { goToView, rows, test } from './test.ts'

const viewport = { width: 390, height: 844 }

test('the legend of a plot and the groups of dead letters stay inside their boxes', async ({ start, open }) => {
  const app = await start()
  const { page } = await open(app, { viewport })
  await app.post(track('Order Failed'))
  await expect.poll(async () => (await app.counts()).deadLetters).toBe(1)

  await goToView(page, 'Queues')
  await page
    .locator('figcaption')
    .filter({ hasText: /p99\d.* ms/ })
    .first()
    .waitFor()
  expect(await findSpilt(page, '.plot figcaption')).toEqual([])
  await goToView(page, 'Dead letters')
  await page.locator('.groups button').nth(1).waitFor()
  expect(await findSpilt(page, '.groups button')).toEqual([])
  expect(await findSpilt(page, '.groups')).toEqual([])
  expect([await measureOverflow(page), await findViolations(page)]).toEqual([0, []])
})

test('the navigation has a shadow where it can be scrolled to more, and shows where the reader is', async ({
  start,
  open,
}) => {
  const app = await start()
  const { page } = await open(app, { viewport })
  const nav = page.getByRole('navigation', { name: 'Views' })
  await nav.getByRole('link', { name: 'History' }).waitFor()
  const none = await edgeOf(page, 'left')
  expect(await edgeOf(page, 'right')).not.toBe(none)

  await page.keyboard.press('g')
  await page.keyboard.press('h')
  await page.getByRole('heading', { name: 'History', level: 1 }).waitFor()
  expect(await nav.evaluate((element) => element.scrollLeft)).toBeGreaterThan(0)
  expect(await edgeOf(page, 'left')).not.toBe(none)
  expect(await edgeOf(page, 'right')).toBe(none)
})

test('the user of a message that waits is shown, also behind an error and before its next attempt', async ({
  start,
  open,
}) => {
  const app = await start()
  const { page } = await open(app, { viewport })
  await app.partner([503])
  await app.queue([track('Order Completed', { userId: 'katherine@shop.example' })])
  const row = rows(page).filter({ hasText: 'Waiting' })
  await row
    .getByText(/\d\d:\d\d$/)
    .first()
    .waitFor()
  const user = row.locator('.user')
  expect(await user.innerText()).toBe('katherine@shop.example')
  expect(await user.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0)
  expect(await findSpilt(page, '.message-row')).toEqual([])

  await goToView(page, 'Queues')
  await page.getByRole('region', { name: 'Retries of partner' }).getByText('katherine@shop.example').waitFor()
})

/** The pixels above the links at one end of the navigation. */
async function edgeOf(page: Page, side: 'left' | 'right'): Promise<string> {
  const { x, y, width } = (await page.locator('.top nav').boundingBox()) ?? { x: 0, y: 0, width: 0 }
  const clip = { x: side === 'left' ? x : x + width - 2, y, width: 2, height: 2 }
  return (await page.screenshot({ clip })).toString('base64')
}

/** The other views, used as a person does: events, queues, dead letters, history. */

import { expect } from 'vitest'
import { goToView, message, rows, test, track } from './test.ts'

test('queues: a row each, its counts, and plots that have points', async ({ openApp }) => {
  const { app, page } = await openApp()
  await app.partner([503])
  await app.queue([track('Order Completed')])
  await app.post(track('Order Failed'))
  await app.post(track('Order Completed'))
  await goToView(page, 'Queues')
  const queue = (name: string) => page.locator('li.queue').filter({ has: page.getByRole('heading', { name }) })
  const numberOf = async (name: string, of: string): Promise<string> =>
    await queue(name).locator('dl div').filter({ hasText: of }).locator('dd').innerText()
  await expect.poll(() => numberOf('app', 'Dead')).toMatch(/^1/)
  await expect.poll(() => numberOf('partner', 'Waiting')).toBe('1')
  await queue('app').getByText('ok', { exact: true }).waitFor()
  await queue('app')
    .getByText(/^counted/)
    .waitFor()

  await expect.poll(() => queue('app').locator('svg path[d], svg polyline[points]').count()).toBeGreaterThan(3)
  await queue('partner').locator('.plot').nth(1).waitFor()
  await queue('partner').getByRole('button', { name: 'partner' }).click()
  await queue('partner').locator('.plot').first().waitFor({ state: 'detached' })
})

test('events: those without a schema first, how many came, and which fields do not match', async ({ openApp }) => {
  const { app, page } = await openApp()
  await goToView(page, 'Events')
  const events = (part: string) => page.getByRole('region', { name: `Events of ${part}` })
  const cells = (part: string, event: string) =>
    events(part)
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: event }) })
      .getByRole('cell')
      .allInnerTexts()
  await events('app').getByText('No message has arrived here yet.').waitFor()
  await expect.poll(() => cells('inline', 'Order Planned')).toEqual(['yes', '0', '0.0', '–', '–'])

  await app.post(track('Order Completed'))
  for (const price of [1, '2', 'none']) {
    const properties = { items: [{ price: 1 }, { price }] }
    await app.post(track('Order Priced', { properties }), '/inline')
  }
  await app.post(track('Order\u202ePriced<b>'), '/inline')
  await app.post(track('Order Forged'), '/inline', 'another secret')
  await expect.poll(async () => (await cells('inline', 'Order Priced')).slice(0, 3)).toEqual(['yes', '3', '0.2'])
  const headers = await events('inline').getByRole('rowheader').allInnerTexts()
  expect(headers[0]).toBe('Order\\u202ePriced<b>')
  expect(headers[1]).toContain('Order Priced')
  expect(headers[1]).toContain('2 × properties.items[].price invalid_type')
  expect(headers.slice(2)).toEqual(['Order Planned'])
  expect((await cells('inline', 'Priced<b>')).slice(0, 2)).toEqual(['none', '1'])
  expect(await cells('app', 'Order Completed')).toHaveLength(4) // Without schemas.
})

test('dead letters: a dry run says what would happen, then one is redriven and the others are dropped', async ({
  openApp,
}) => {
  const { app, page } = await openApp()
  for (let count = 0; count < 3; count += 1) await app.post(track('Order Failed'))
  await app.post('{"type":"track"}')
  await expect.poll(async () => (await app.counts()).deadLetters).toBe(4)
  await goToView(page, 'Dead letters')
  const letters = page.getByRole('region', { name: 'Dead letters' }).getByRole('listitem')
  await expect.poll(() => letters.count()).toBe(4)
  await page.locator('.groups').getByRole('button').nth(1).waitFor()

  await letters.filter({ hasText: 'Order Failed' }).first().getByRole('button', { name: 'Redrive' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('1').first().waitFor()
  expect((await app.counts()).deadLetters).toBe(4)
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  expect((await app.counts()).deadLetters).toBe(4)

  const before = (await app.counts()).handled
  await letters.filter({ hasText: 'Order Failed' }).first().getByRole('button', { name: 'Redrive' }).click()
  await dialog.getByRole('button', { name: 'Redrive' }).click()
  await dialog.waitFor({ state: 'detached' })
  await expect.poll(async () => (await app.counts()).handled).toBeGreaterThan(before)
  await expect.poll(async () => (await app.counts()).deadLetters).toBe(4) // It failed again.
  await expect.poll(() => letters.count()).toBe(4)

  const group = page.locator('.groups').getByRole('button').filter({ hasText: 'handler_failed' })
  await group.click()
  await expect.poll(() => letters.count()).toBe(3)
  await page.locator('.letters-bar').getByRole('button', { name: 'Drop' }).click()
  await dialog.getByText('3').first().waitFor()
  expect((await app.counts()).deadLetters).toBe(4)
  await dialog.getByRole('button', { name: 'Drop' }).click()
  await dialog.waitFor({ state: 'detached' })
  expect((await app.counts()).deadLetters).toBe(1)
})

test('history: found by filters, and replayed after a dry run: one, a selection, all that match', async ({
  openApp,
}) => {
  const { app, page, faults } = await openApp()
  for (const userId of ['ada', 'bob', 'eve']) await app.post(track('Order Completed', { userId }))
  await app.post(track('Order Shipped', { userId: 'ada' }))
  await expect.poll(async () => (await app.counts()).handled).toBe(4)

  await rows(page).filter({ hasText: 'Order Shipped' }).click()
  await message(page).getByRole('button', { name: 'Replay' }).click()
  const dialog = page.getByRole('dialog')
  const replay = dialog.getByRole('button', { name: 'Replay' }).and(page.locator(':enabled'))
  await dialog.getByText('Would replay 1 message of app: 1 Order Shipped.').waitFor()
  expect((await app.counts()).handled).toBe(4)
  await dialog.getByLabel('Id').fill('one')
  await replay.click()
  await expect.poll(async () => (await app.counts()).handled).toBe(5)

  const items = page.getByRole('region', { name: 'Handled messages' }).getByRole('listitem')
  await expect.poll(() => items.count()).toBe(4)
  await page.getByLabel('Event').fill('Order Completed')
  await page.getByLabel('Event').blur()
  await expect.poll(() => items.count()).toBe(3)
  await items.filter({ hasText: 'bob' }).getByRole('checkbox').check()
  await page.getByRole('button', { name: 'Replay 1 selected' }).click()
  await replay.click()
  await expect.poll(async () => (await app.counts()).handled).toBe(6)

  await page.getByRole('button', { name: 'Replay all that match' }).click()
  await dialog.getByText('Would replay 3 messages of app').waitFor()
  await dialog.getByLabel('Only these handlers').fill('crm')
  await dialog.getByRole('alert').filter({ hasText: "Got 'crm'." }).waitFor()
  expect(faults.splice(0)).toEqual([expect.stringContaining('400')])
  await dialog.getByLabel('Only these handlers').fill('')
  await replay.click()
  await expect.poll(async () => (await app.counts()).handled).toBe(9)
  await page.getByRole('region', { name: 'Replays' }).getByText('one').waitFor()

  await goToView(page, 'Messages')
  await expect.poll(() => rows(page).filter({ hasText: 'Order Shipped' }).count()).toBe(2)
  await rows(page).filter({ hasText: 'replay one' }).click()
  await message(page).getByText('Handled in').waitFor()
  expect(await message(page).getByRole('button', { name: 'Replay' }).count()).toBe(0)
})

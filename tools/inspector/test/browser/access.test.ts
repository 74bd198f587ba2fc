/** What everyone needs of the page: the keyboard alone, both themes, narrow windows, assistive technology. */

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { expectFit, VIEWS } from './axe.ts'
import { type App, goToView, message, rows, test, track } from './test.ts'

for (const [colorScheme, width] of [
  ['light', 1_280],
  ['dark', 360],
] as const) {
  test(`${colorScheme}, ${width} px: every view can be used by everyone, and fits`, async ({ start, open }) => {
    const app = await start({ isManual: true })
    const { page } = await open(undefined, { colorScheme, viewport: { width, height: 800 } })
    await page.goto(app.url)
    await page.getByText('No messages yet').waitFor()
    await expectFit(page, 'no messages')
    await makeTraffic(app)
    expect(await page.evaluate('getComputedStyle(document.documentElement).colorScheme')).toContain(colorScheme)

    for (const [view, content] of Object.entries(VIEWS)) {
      await goToView(page, view)
      await page.locator(content).first().waitFor()
      await expectFit(page, view)
      if (view === 'Dead letters') await expectDialogFit(page)
    }
    for (const row of ['Dead', 'Refused', 'partner']) {
      await rows(page).filter({ hasText: row }).first().click()
      await message(page).getByRole('heading', { name: 'Timeline' }).waitFor()
      for (const tab of ['Text', 'Bytes', 'Difference', 'Tree']) {
        await message(page).getByRole('tab', { name: tab }).click()
        await expectFit(page, `message, ${row}, ${tab}`)
      }
      await message(page).getByRole('button', { name: 'Close' }).click()
    }
    for (const button of ['Filters', 'Keys']) {
      await page.getByRole('button', { name: button }).click()
      await expectFit(page, button)
    }
  })
}

test('the keyboard alone: from the list to a message, to its dead letter, to its redrive', async ({ openApp }) => {
  const { app, page } = await openApp()
  const { keyboard } = page
  await app.post(track('Order Failed'))
  await app.post(track('Order Completed'))
  await rows(page).filter({ hasText: 'Dead' }).waitFor()
  await keyboard.press('/')
  await keyboard.type('failed')
  await expect.poll(() => rows(page).count()).toBe(1)
  await keyboard.press('Escape')
  await keyboard.press('j')
  await keyboard.press('Enter')
  await message(page).getByText('The card was declined.').first().waitFor()
  expect(await page.evaluate('document.activeElement?.id')).toBe('message-title')
  const { handled } = await app.counts()
  await tabTo(page, 'Redrive')
  await keyboard.press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Redrive' }).and(page.locator(':enabled')).waitFor()
  await tabTo(page, 'Redrive')
  await keyboard.press('Enter')
  await expect.poll(async () => (await app.counts()).handled).toBeGreaterThan(handled)
  await page.getByRole('dialog').waitFor({ state: 'detached' })

  for (const [keys, view] of [
    ['ge', 'Events'],
    ['gq', 'Queues'],
    ['gm', 'Messages'],
  ] as const) {
    await page.evaluate('document.activeElement?.blur()')
    for (const key of keys) await keyboard.press(key)
    await page.getByRole('heading', { name: view, level: 1 }).waitFor()
  }
  await keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

async function makeTraffic(app: App): Promise<void> {
  await app.partner([503])
  await app.queue([track('Order Completed')])
  for (const event of ['Order Failed', 'Order Completed']) {
    await app.post(track(event))
    await app.post(track(event), '/inline')
  }
  await app.post('{"type":"track"}')
  await app.post(track('Order Completed'), '/webhooks', 'a wrong secret')
  await app.record([track('Order Completed')])
}

async function expectDialogFit(page: Page): Promise<void> {
  await page.locator('.letters-bar').getByRole('button', { name: 'Drop' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drop' }).and(page.locator(':enabled')).waitFor()
  await expectFit(page, 'dialog')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
}

async function tabTo(page: Page, name: string): Promise<void> {
  const seen: string[] = []
  for (let presses = 0; presses < 60; presses += 1) {
    const focused = await page.evaluate<string>(
      '(document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.innerText ?? "").trim()',
    )
    if (focused.replace(/\s+/g, ' ') === name) return
    seen.push(focused)
    await page.keyboard.press('Tab')
  }
  throw new Error(`Tab never came to ${name}, but to ${seen.join(' | ')}`)
}

/**
 * Takes the pictures of the inspector for the guide. Run this file as a program, after a build. The program opens the real page of an
 * app in Chromium.
 */

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { tellStory } from '../../../docs/story.ts'
import { launchChromium, openPage } from '../test/browser/chromium.ts'

const FOLDER = join(import.meta.dirname, '../../../docs/pictures')
const MAX_BYTES = 120_000

const { url } = await tellStory(3000, 4000) // The ports are fixed, because the pictures show the addresses.
await takePictures()
process.exit() // Without this, the servers of the app would keep the process alive.

async function takePictures(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const browser = await launchChromium()
  for (const colorScheme of ['light', 'dark'] as const) {
    const look = { colorScheme, timezoneId: 'UTC', locale: 'en-GB' } as const
    const { page, faults } = await openPage(browser, { ...look, viewport: { width: 1_440, height: 900 } })
    await page.goto(url)
    const row = (...texts: readonly string[]) =>
      texts.reduce((rows, hasText) => rows.filter({ hasText }), page.getByRole('option')).first()
    const view = (name: string) => page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).click()

    await row('app', 'Order Refunded').click()
    await page.locator('.timeline').first().waitFor()
    await takePicture(page, `messages-${colorScheme}`)
    await page.getByRole('searchbox').fill('Invoice')
    await row('crm').click()
    await page.getByText('Next attempt:').waitFor()
    await takePicture(page, `retries-${colorScheme}`)
    await view('Events')
    await page.getByText('Basket Emptied').waitFor()
    await takePicture(page, `events-${colorScheme}`)
    await view('Queues')
    await page.getByRole('button', { name: '4 hours' }).first().click()
    await page.locator('.queue-body svg').first().waitFor()
    await takePicture(page, `queues-${colorScheme}`)
    if (faults.length > 0) throw new Error(faults.join('\n'))
  }
  await browser.close()
}

async function takePicture(page: Page, name: string): Promise<void> {
  await page.evaluate('new Promise((resolve) => setTimeout(resolve, 700))') // By then, the plots and numbers of the page have loaded.
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 75 })
  const bytes = Buffer.from(data, 'base64')
  if (bytes.length > MAX_BYTES)
    throw new RangeError(`${name} must have at most ${MAX_BYTES} bytes. Got ${bytes.length}. Lower its quality.`)
  await writeFile(join(FOLDER, `${name}.webp`), bytes)
  console.log(`${name}.webp: ${Math.round(bytes.length / 1_000)} KB`)
}

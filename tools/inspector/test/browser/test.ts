/** The tests of the page: each with an app and pages of its own, which end with it. A page that did what it must not is a failure. */

import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, test as base, expect, inject } from 'vitest'
import type { TrackMessage } from '../../../../src/protocol/message.ts'
import { type App, startApp } from './app.ts'
import { launchChromium, openPage, type Watched } from './chromium.ts'
import type { AppOptions } from './programs/app.ts'

let browser: Promise<Browser> | undefined
afterAll(async () => (await browser)?.close())

interface Fixtures {
  start(options?: AppOptions): Promise<App>
  open(app?: App, options?: BrowserContextOptions): Promise<Watched>
  openApp(options?: AppOptions): Promise<Watched & { readonly app: App }>
}

export const test = base.extend<Fixtures>({
  // biome-ignore lint/correctness/noEmptyPattern: the runner reads which fixtures it uses
  start: async ({}, use) => {
    const apps: App[] = []
    await use(async (options) => {
      const app = await startApp(inject('directory'), options)
      apps.push(app)
      return app
    })
    await Promise.all(apps.map((app) => app.kill()))
  },
  // biome-ignore lint/correctness/noEmptyPattern: the runner reads which fixtures it uses
  open: async ({}, use) => {
    browser ??= launchChromium()
    const pages: Watched[] = []
    await use(async (app, options) => {
      const watched = await openPage(await (browser as Promise<Browser>), options)
      pages.push(watched)
      if (app !== undefined) await watched.page.goto(app.url)
      return watched
    })
    await Promise.all(pages.map(({ page }) => page.context().close()))
    expect(pages.flatMap(({ faults }) => faults)).toEqual([])
  },
  openApp: async ({ start, open }, use) => {
    await use(async (options) => {
      const app = await start(options)
      return { app, ...(await open(app)) }
    })
  },
})

export function rows(page: Page): Locator {
  return page.getByRole('listbox', { name: 'Messages' }).getByRole('option')
}

export function message(page: Page): Locator {
  return page.locator('section.message')
}

export async function goToView(page: Page, name: string): Promise<void> {
  await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).click()
  await page.getByRole('heading', { name, level: 1 }).waitFor()
}

let tracked = 0

export function track(event: string, more: object = {}): TrackMessage {
  tracked += 1
  return {
    version: 1,
    type: 'track',
    event,
    userId: 'ada',
    messageId: `message-${process.pid}-${tracked}`,
    timestamp: new Date().toISOString(),
    properties: { order_id: `order-${tracked}`, total: 39.95, currency: 'EUR' },
    ...more,
  } as TrackMessage
}

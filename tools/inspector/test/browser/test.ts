/** The tests of the page: each with an app and pages of its own, which end with it. A page that did what it must not is a failure. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core'
import { afterAll, test as base, expect, inject } from 'vitest'
import type { TrackMessage } from '../../../../src/protocol/message.ts'
import { hmac } from '../../../../test/support/hmac.ts'
import { launchChromium, openPage, type Watched } from './chromium.ts'
import type { AppOptions, Commands, Started } from './programs/app.ts'

let browser: Promise<Browser> | undefined
afterAll(async () => (await browser)?.close())

const SECRET = 'the secret of the app'

export interface App extends Started, Commands {
  post(body: object | string | Uint8Array, path?: '/webhooks' | '/inline', secret?: string): Promise<number>
  kill(): Promise<void>
}

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

/** Starts the app of `programs/` in a process of its own, where the packed tarball is installed. It also ends when this process does. */
async function startApp(directory: string, options: AppOptions = {}): Promise<App> {
  const { NODE_OPTIONS: _ours, NODE_ENV: _test, ...env } = process.env
  const APP = JSON.stringify(options)
  const child = fork(`${directory}/app.ts`, {
    cwd: directory,
    env: { ...env, APP },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  const early = ended.then(([code]) => Promise.reject(new Error(`The app ended with ${code} before it listened.`)))
  const [started]: Started[] = (await Promise.race([once(child, 'message'), early])) as [Started]
  early.catch(() => {})

  let commands = 0
  async function ask(command: string, args: readonly unknown[]): Promise<unknown> {
    commands += 1
    const id = commands
    child.send({ id, command, args })
    for (;;) {
      const [given] = (await once(child, 'message')) as [{ id: number; answer?: unknown; error?: string }]
      if (given.id !== id) continue
      if (given.error !== undefined) throw new Error(`${command}: ${given.error}`)
      return given.answer
    }
  }
  const asked = <Command extends keyof Commands>(command: Command) =>
    ((...args: readonly unknown[]) => ask(command, args)) as Commands[Command]

  return {
    ...(started as Started),
    record: asked('record'),
    queue: asked('queue'),
    partner: asked('partner'),
    counts: asked('counts'),
    async post(body, path = '/webhooks', secret = SECRET) {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      const bytes = Buffer.from(isRaw ? (body as string) : JSON.stringify(body))
      const headers = { 'content-type': 'application/json', 'x-signature': hmac(bytes, secret) }
      const response = await fetch(`${(started as Started).origin}${path}`, { method: 'POST', headers, body: bytes })
      await response.arrayBuffer()
      return response.status
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

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

/** Chromium, and pages that note whatever a page of the inspector must never do. */

import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

export interface Watched {
  readonly page: Page
  readonly faults: string[]
}

/** Starts it. It resolves no name, so that nothing goes beyond this machine. The caller closes it. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium'
  if (!existsSync(executablePath)) {
    throw new Error(
      `The tests of the page need Chromium. Got no file at ${executablePath}. Install it (apt-get install chromium), or set CHROMIUM to its path.`,
    )
  }
  const only = '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1 , EXCLUDE localhost'
  return await chromium.launch({
    executablePath,
    args: ['--headless=new', '--no-sandbox', only],
  })
}

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<Watched> {
  const context = await browser.newContext({
    permissions: ['clipboard-read', 'clipboard-write'],
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    ...options,
  })
  const page = await context.newPage()
  page.setDefaultTimeout(15_000)
  const faults: string[] = []
  let origin: string | undefined
  page.on('console', (message) => {
    if (['error', 'warning', 'assert'].includes(message.type())) faults.push(`console: ${message.text()}`)
  })
  page.on('pageerror', (error) => faults.push(`error: ${error.stack}`))
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('popup', (popup) => faults.push(`window: ${popup.url()}`))
  page.on('request', (request) => {
    const url = new URL(request.url())
    origin ??= url.origin
    if (url.protocol !== 'data:' && url.origin !== origin) faults.push(`request: ${url}`)
  })
  return { page, faults }
}

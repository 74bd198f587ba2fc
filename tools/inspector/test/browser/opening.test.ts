/** Who gets in, in Chromium: the URL with the token, and nothing else. */

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { track } from './messages.ts'
import { goToView, message, rows, test } from './test.ts'

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

/** Starts another site on this machine, and notes the headers of what comes. Chromium lets no site of the network come here at all. */
async function startSite(html: string, host = 'localhost', seen: IncomingHttpHeaders[] = []): Promise<string> {
  const server = createServer(({ headers }, response) => {
    seen.push(headers)
    response.setHeader('content-type', 'text/html').end(html)
  }).listen(0, '127.0.0.1')
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  await once(server, 'listening')
  return `http://${host}:${(server.address() as AddressInfo).port}/hookline/elsewhere`
}

test('no other site can frame the page', async ({ start, open }) => {
  const app = await start({ open: 'write' })
  const { page, faults } = await open()
  const answered = page.waitForResponse(app.url)
  await page.goto(await startSite(`<iframe src="${app.url}"></iframe>`))
  expect((await answered).status()).toBe(200)
  await expect.poll(() => page.frames().map((frame) => frame.url())).toContain('chrome-error://chromewebdata/')
  expect(faults.splice(0)).toEqual([`request: ${app.url}`, expect.stringContaining('frame-ancestors')])
})

test('another server of this machine gets nothing that lets it in, and its page can do nothing', async ({
  start,
  open,
}) => {
  const app = await start()
  const { page, faults } = await open(app)
  await page.getByText('No messages yet').waitFor()
  const inspector = `${app.origin}/hookline`
  const seen: IncomingHttpHeaders[] = []
  const site = await startSite(
    `<a href="${inspector}/">Open</a>
    <form method="post" action="${inspector}/api/drop"><button>Drop</button></form>`,
    '127.0.0.1', // As the app: the port is all that differs.
    seen,
  )

  await page.goto(site)
  for (const headers of seen) {
    const { connection: _, host: __, ...others } = headers
    for (const given of [others, { ...others, 'x-hookline-inspector': '1' }]) {
      const sent = Object.entries(given).map(([name, value]): [string, string] => [name, String(value)])
      expect((await fetch(`${inspector}/api/setup`, { headers: sent })).status).toBe(403)
    }
  }
  expect(seen.length).toBeGreaterThan(0)
  const attempts = `Promise.allSettled([
    fetch('${inspector}/api/setup', { credentials: 'include' }),
    fetch('${inspector}/api/setup', { credentials: 'include', headers: { 'x-hookline-inspector': '1' } }),
    fetch('${inspector}/api/drop', { credentials: 'include', method: 'POST', headers: { 'x-hookline-inspector': '1' } }),
  ])`
  const attempted = await page.evaluate<{ status: string }[]>(attempts)
  expect(attempted.map(({ status }) => status)).toEqual(Array(3).fill('rejected'))
  expect(await page.evaluate('sessionStorage.length + localStorage.length')).toBe(0)
  await page.getByRole('button', { name: 'Drop' }).click()
  await page.getByText('The inspector').waitFor()

  await page.goto(site)
  await page.getByRole('link', { name: 'Open' }).click()
  await page.getByText('No messages yet').waitFor() // Its own origin, in the same tab.
  faults.length = 0 // What Chromium says of what it did not load.
})

test('who may only look is offered nothing that changes something, and is refused it', async ({ openApp }) => {
  const { app, page, faults } = await openApp({ open: 'read', isManual: true })
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

  const statuses = await page.evaluate(`Promise.all(['redrive', 'drop', 'send-again', 'replay'].map(async (path) => {
    const headers = { 'content-type': 'application/json', 'x-hookline-inspector': '1' }
    const response = await fetch('api/' + path, { method: 'POST', headers, body: '{}' })
    return response.status
  }))`)
  expect(statuses).toEqual(Array(4).fill(403))
  expect(faults.splice(0)).toEqual(Array(4).fill(expect.stringContaining('403')))
  expect(await app.counts()).toMatchObject({ handled: 1, deadLetters: 1 })
})

/** Who gets in, in Chromium: the URL with the token, and nothing else. */

import { expect } from 'vitest'
import { frameworks, test } from './test.ts'

for (const framework of frameworks) {
  test(`${framework}: the URL with the token opens the page, and the token leaves the address bar`, async ({
    start,
    open,
  }) => {
    const app = await start({ framework })
    const { page } = await open()
    const response = await page.goto(app.url)
    expect(response?.status()).toBe(200)
    expect(page.url().split('#')[0]).toBe(`${app.origin}/hookline/`)
    await page.getByRole('heading', { name: 'Messages' }).waitFor()
    expect(await page.context().cookies()).toMatchObject([
      { httpOnly: true, sameSite: 'Strict', path: '/hookline', domain: '127.0.0.1' },
    ])
    expect(await page.evaluate('document.cookie')).toBe('')

    await page.reload()
    await page.getByRole('heading', { name: 'Messages' }).waitFor()
    expect(await page.evaluate('document.referrer + localStorage.length + sessionStorage.length')).toBe('00')
  })
}

test('without the token, the page says what to do', async ({ start, open }) => {
  const app = await start()
  const { page, faults } = await open()
  for (const url of [`${app.origin}/hookline`, `${app.origin}/hookline/?token=${'a'.repeat(43)}`]) {
    const response = await page.goto(url)
    expect(response?.status()).toBe(403)
    expect(await page.innerText('body')).toContain('Open the whole URL that the app printed when it started')
  }
  expect(faults.splice(0)).toEqual(Array(2).fill(expect.stringContaining('403')))
})

test('no other site can frame the page', async ({ start, open }) => {
  const app = await start({ open: 'write' })
  const { page, faults } = await open()
  const body = `<iframe src="${app.url}"></iframe>`
  await page.route('**/elsewhere', (route) => route.fulfill({ contentType: 'text/html', body }))
  await page.goto('http://localhost:1/elsewhere')
  await expect.poll(() => page.frames().map((frame) => frame.url())).toContain('chrome-error://chromewebdata/')
  expect(faults.splice(0)).toEqual([`request: ${app.url}`])
})

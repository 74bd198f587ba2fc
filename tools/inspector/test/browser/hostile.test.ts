/** What strangers write into their messages, shown by the page: as text, and nothing more. */

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { measureOverflow } from './axe.ts'
import { goToView, message, rows, test, track } from './test.ts'

const SCRIPT = '<script>alert(1)</script>'
const IMAGE = '"><img src="http://elsewhere.example/x" onerror="alert(2)">'
const LINK = 'javascript:alert(3)'
/** The most bytes of a body that the receiver takes. */
const LIMIT = 512 * 1024
const TURNED_SHOWN = '\\u202eexe.\\u2066gnp\\u200f\\u061c'
const TURNED = '\u202eexe.\u2066gnp\u200f\u061c'

function nested(open: string, close: string): string {
  const [head, tail] = ['{"type":"track","event":"Nested","userId":"ada","properties":{"deep":', '}}']
  const depth = Math.floor((LIMIT - head.length - tail.length - 1) / (open.length + close.length))
  return `${head}${open.repeat(depth)}0${close.repeat(depth)}${tail}`
}

/** Each body, and what the title of its message shows. */
const BODIES: Readonly<Record<string, [body: object | string, shown?: string]>> = {
  'a script': [track(SCRIPT, { userId: SCRIPT, properties: { [SCRIPT]: SCRIPT } }), SCRIPT],
  'an image': [track(IMAGE, { userId: IMAGE, context: { page: { url: IMAGE } } }), IMAGE],
  'a link of a script': [track(LINK, { userId: LINK, properties: { url: LINK, [LINK]: LINK } }), LINK],
  'marks that turn text around': [track(TURNED, { userId: TURNED, properties: { [TURNED]: TURNED } }), TURNED_SHOWN],
  'halves of characters': [
    track('\ud800 half', { userId: '\udfff', properties: { '\udc00': '\ud83d' } }),
    '\\ud800 half',
  ],
  'an event of 10 000 characters': [track('long '.repeat(2_000), { userId: 'w'.repeat(10_000) })],
  'objects nested to the limit': [nested('{"a":', '}')],
  'a body of 400 KB': [track('Large', { properties: { text: 'y'.repeat(400_000) } })],
  'a body of many fields': [
    track('Many', { properties: Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`field ${at}`, at])) }),
  ],
}

for (const [name, [body, shown = '']] of Object.entries(BODIES)) {
  test(`${name} is shown as text`, async ({ openApp }) => {
    const { app, page } = await openApp()
    expect(await app.post(body)).toBe(200)
    await rows(page).first().click()
    await message(page).getByRole('heading', { name: 'Timeline' }).waitFor()
    const title = await message(page).getByRole('heading', { level: 2 }).innerText()
    expect(title).toContain(shown)
    expect(await page.locator('.timeline').innerText()).toContain('Answered 200')

    for (const tab of ['Tree', 'Text', 'Bytes', 'Difference']) {
      await message(page).getByRole('tab', { name: tab }).click()
      await openBranches(page)
      expect(await findEscapes(page)).toEqual([])
    }
    await page.setViewportSize({ width: 360, height: 740 })
    expect(await findEscapes(page)).toEqual([])
  })
}

test('a refused request is shown as text, with its headers', async ({ openApp }) => {
  const { app, page } = await openApp()
  const headers = {
    'x-signature': '0'.repeat(40),
    'x-note': encodeURI(SCRIPT),
    'user-agent': IMAGE,
    referer: LINK,
    'content-type': 'application/json',
  }
  const response = await fetch(`${app.origin}/webhooks?${IMAGE}`, { method: 'POST', headers, body: SCRIPT + TURNED })
  expect(response.status).toBe(401)
  await rows(page).first().click()
  await message(page).getByText('user-agent').waitFor()
  await message(page).getByText(IMAGE).first().waitFor()
  expect(await findEscapes(page)).toEqual([])
})

test('a dead letter is shown as text, and sent again from the page as it was', async ({ openApp }) => {
  const { app, page } = await openApp()
  await app.post(track('Order Failed', { userId: TURNED, properties: { [SCRIPT]: IMAGE, url: LINK } }))
  await rows(page).filter({ hasText: 'Dead' }).waitFor()
  await goToView(page, 'Dead letters')
  const letter = page.locator('.letter')
  await letter.getByText(TURNED_SHOWN).first().waitFor()
  await letter.locator('summary').click()
  await letter.getByText(SCRIPT).first().waitFor()
  expect(await findEscapes(page)).toEqual([])

  await letter.getByRole('link').first().click()
  await message(page).getByRole('button', { name: 'Send again' }).click()
  await page.getByLabel('Sender').selectOption('to inline')
  await page.getByRole('button', { name: 'Send', exact: true }).click()
  await page.getByRole('region', { name: 'Result' }).getByText('500').first().waitFor()
  expect(await findEscapes(page)).toEqual([])
})

async function openBranches(page: Page): Promise<void> {
  for (let level = 0; level < 30; level += 1) {
    const closed = message(page).locator('.tree button[aria-expanded=false]').first()
    if ((await closed.count()) === 0) return
    await closed.click()
  }
}

/** What is in the page that a message must not bring into it, and pixels beside the window. */
async function findEscapes(page: Page): Promise<string[]> {
  const elements = await page.evaluate<string[]>(
    `[...document.querySelectorAll('script:not([src="page.js"]), img, iframe, object, embed, base, form[action], a, [onerror], [onclick]')]
      .filter((element) => element.localName !== 'a' || !element.getAttribute('href')?.startsWith('#/'))
      .map((element) => element.outerHTML.slice(0, 200))`,
  )
  const overflow = await measureOverflow(page)
  return overflow > 0 ? [...elements, `${overflow} pixels beside the window`] : elements
}

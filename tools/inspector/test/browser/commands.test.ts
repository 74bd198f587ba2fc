/** `--ui` of `hookline listen` and `hookline queue` of the packed package, as a person uses it. */

import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { expect, inject } from 'vitest'
import { goToView, message, rows, test } from './test.ts'

/** Runs the command while something is done with the URLs that it prints, in their order. */
async function hookline(args: readonly string[], run: (nextUrl: () => Promise<string>) => Promise<void>) {
  const { HOOKLINE_SECRET: _none, ...env } = process.env
  const program = ['node_modules/hookline/dist/cli.js', ...args]
  const child = spawn(process.execPath, program, { cwd: inject('directory'), env, stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const lines = createInterface({ input: child.stderr })[Symbol.asyncIterator]()
  try {
    await run(async () => /http:[^\s,]+/.exec(String((await lines.next()).value))?.[0] ?? '')
  } finally {
    child.kill()
    await ended
  }
}

test('hookline listen --ui: says what to do while nothing came, and shows what came, unchecked without a secret', async ({
  open,
}) => {
  await hookline(['listen', '--ui', '--port', '0', '--store', 'listen.sqlite'], async (nextUrl) => {
    const [pageUrl, url] = [await nextUrl(), await nextUrl()]
    const { page } = await open()
    await page.goto(pageUrl)
    await page.getByText('No requests yet').waitFor()
    const curl = await page.locator('.empty code').last().innerText()
    expect(curl).toContain(`curl ${url} `)
    await goToView(page, 'Queues')
    await page.getByText('has no queue').waitFor()
    await goToView(page, 'Messages')

    await promisify(execFile)('sh', ['-c', curl])
    await rows(page).filter({ hasText: 'Order Completed' }).click()
    await message(page).getByText('Signature not checked').waitFor()
    await goToView(page, 'Events')
    await page.getByRole('rowheader', { name: 'Order Completed' }).waitFor()
    expect(await page.getByRole('columnheader', { name: 'Schema' }).count()).toBe(0)
    await page.goto('about:blank')
  })
})

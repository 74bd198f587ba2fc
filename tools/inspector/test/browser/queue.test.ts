/** `hookline queue --ui` of the packed package, as a person uses it. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, inject } from 'vitest'
import { sqliteQueue } from '../../../../src/queues-sqlite.ts'
import { test } from './test.ts'

test('hookline queue --ui: opens on the dead letters, and has no views of messages', async ({ open }) => {
  const path = `${inject('directory')}/queue-ui.sqlite`
  const queue = sqliteQueue({ path, name: 'jobs' })
  await queue.push([{ id: crypto.randomUUID(), body: Buffer.from('{"type":"track","event":"Order Lost"}') }])
  queue.work(async () => ({ deadLetter: 'refused' }), { concurrency: 1 })
  await queue.drain()
  await queue.close({ graceMs: 0 })

  const args = ['node_modules/hookline/dist/cli.js', 'queue', path, '--ui']
  const child = spawn(process.execPath, args, { cwd: inject('directory'), stdio: ['ignore', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  try {
    const [line] = await once(createInterface({ input: child.stderr }), 'line')
    const { page } = await open()
    await page.goto(/http:[^\s,]+/.exec(String(line))?.[0] ?? '')
    await page.locator('.letter').getByText('Order Lost').first().waitFor()
    const links = page.getByRole('navigation', { name: 'Views' }).getByRole('link')
    expect((await links.allInnerTexts()).map((text) => text.replace(/\s*\d+$/, ''))).toEqual([
      'Queues',
      'Dead letters',
      'History',
    ])
    await page.goto('about:blank')
  } finally {
    child.kill()
    await ended
  }
})

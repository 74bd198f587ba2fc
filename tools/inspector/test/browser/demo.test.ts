/** The demo of the site: files that any static server serves, of which the page shows a recording. */

import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect } from 'vitest'
import { runProgram } from '../../../../test/package/run.ts'
import { VIEWS } from './axe.ts'
import { goToView, message, rows, test } from './test.ts'

const root = fileURLToPath(new URL('../../../..', import.meta.url))
const FOLDER = '/hookline/demo/'
const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.json': 'application/json',
}

let folder: string
let server: Server
let url: string
/** What was asked for, and answered. */
const asked: string[] = []

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hookline-demo-'))
  await runProgram(process.execPath, ['tools/inspector/demo/record.ts', folder], root)
  const recording = await readFile(join(folder, 'recording.json'), 'utf8')
  const addresses = new Set(recording.match(/127\.0\.0\.1:\d+/g))
  expect(addresses, 'the ports of this run').toEqual(new Set(['127.0.0.1:3000', '127.0.0.1:4000']))
  server = createServer(async ({ method, url = '' }, response) => {
    const name = url.startsWith(FOLDER) ? url.slice(FOLDER.length) || 'index.html' : undefined
    const bytes = name && (await readFile(join(folder, name)).catch(() => undefined))
    asked.push(`${method} ${url} ${bytes ? 200 : 404}`)
    if (bytes) response.writeHead(200, { 'content-type': TYPES[extname(name ?? '')] ?? 'text/plain' }).end(bytes)
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}${FOLDER}`
})

afterAll(async () => {
  server?.close()
  await rm(folder, { recursive: true, force: true })
})

test('every view opens, and asks for nothing that is not there', async ({ open }) => {
  const { page } = await open()
  await page.goto(url)
  await page.getByText('a recording of two hours of an app').waitFor()
  for (const [view, content] of Object.entries(VIEWS)) {
    await goToView(page, view)
    await page.locator(content).first().waitFor()
  }
  expect(await page.evaluate('document.documentElement.scrollHeight - innerHeight'), 'beside its note').toBe(0)
  await rows(page).filter({ hasText: 'dead letter' }).first().click()
  await message(page).locator('.timeline li').first().waitFor()
  expect(await page.getByRole('alert').allInnerTexts()).toEqual([])
  expect(asked.filter((line) => !line.endsWith(' 200'))).toEqual([])
})

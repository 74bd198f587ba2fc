// Chromium on a page of a site of its own. It resolves no name, so that nothing goes beyond this machine.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import puppeteer from 'puppeteer-core'

const script = readFileSync(createRequire(import.meta.url).resolve('@segment/analytics-next/dist/umd/index.js'))

/** Serves the site and opens its page. `requests` has the URL of everything that the page asked for. */
export async function openPage() {
  const site = createServer((request, response) => {
    if (request.url === '/analytics.js') response.writeHead(200, { 'content-type': 'text/javascript' }).end(script)
    else if (request.url !== '/') response.writeHead(204).end()
    else {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end('<!doctype html><title>Shop</title><script src="/analytics.js"></script>')
    }
  })
  await new Promise((resolve) => void site.listen(0, '127.0.0.1', resolve))
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1'],
  })
  const page = await browser.newPage()
  const requests = []
  page.on('request', (request) => requests.push(request.url()))
  await page.goto(`http://127.0.0.1:${site.address().port}/`)
  return {
    page,
    requests,
    async close() {
      await browser.close()
      site.close()
      site.closeAllConnections()
    },
  }
}

// Chromium on a page of a site of its own. It resolves no name, so that nothing goes beyond this machine.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import puppeteer from 'puppeteer-core'

/** Serves the site and opens its page, which can import `/script.js`, the file of this URL. */
export async function openPage(script) {
  const site = createServer((request, response) => {
    const isScript = request.url === '/script.js'
    response.writeHead(200, { 'content-type': isScript ? 'text/javascript' : 'text/html' })
    response.end(isScript ? readFileSync(new URL(script)) : '<!doctype html><title>Shop</title>')
  })
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    pipe: true, // It ends when this process does, however that ends.
    args: ['--no-sandbox', '--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1'],
  })
  const page = await browser.newPage()
  await page.goto(`http://127.0.0.1:${site.address().port}/`)
  return {
    page,
    async close() {
      await browser.close()
      site.close()
      site.closeAllConnections()
    },
  }
}

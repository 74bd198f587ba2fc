// A page that sends its calls with navigator.sendBeacon while it is left. Runs until SIGTERM.
import { once } from 'node:events'
import { openPage } from './browser.mjs'

const [collector, writeKey, calls] = process.argv.slice(2)
const { page, close } = await openPage()

await page.evaluate(
  ({ collector, writeKey, calls }) => {
    addEventListener('pagehide', () => {
      for (const [type, call] of Object.entries(calls)) {
        const body = { ...call, messageId: crypto.randomUUID(), timestamp: new Date(), sentAt: new Date(), writeKey }
        navigator.sendBeacon(`${collector}/v1/${type}`, JSON.stringify(body))
      }
    })
  },
  { collector, writeKey, calls: JSON.parse(calls) },
)
await page.goto('about:blank')
await once(process, 'SIGTERM')
await close()

// @segment/analytics-next in Chromium with its defaults but for the address, the key, and the settings of a network that is not there.
// Runs until SIGTERM.
import { once } from 'node:events'
import { openPage } from './browser.mjs'

const [collector, writeKey, calls] = process.argv.slice(2)
const { page, close } = await openPage(import.meta.resolve('@segment/analytics-next/dist/umd/index.js'))

await page.evaluate(
  async ({ apiHost, writeKey, calls: { identify, track, page, screen, group, alias } }) => {
    await import('/script.js')
    const analytics = globalThis.AnalyticsNext.AnalyticsBrowser.load({
      writeKey,
      cdnSettings: {
        integrations: { 'Segment.io': { apiKey: writeKey, apiHost, protocol: 'http' } },
        metrics: { sampleRate: 0 },
      },
    })
    analytics.identify(identify.userId, identify.traits)
    analytics.track(track.event, track.properties)
    analytics.page(page.category, page.name, page.properties)
    analytics.screen(screen.name, screen.properties)
    analytics.group(group.groupId, group.traits)
    analytics.alias(alias.userId, alias.previousId)
  },
  { apiHost: `${new URL(collector).host}/v1`, writeKey, calls: JSON.parse(calls) },
)
await once(process, 'SIGTERM')
await close()

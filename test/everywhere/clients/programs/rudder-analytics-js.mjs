// @rudderstack/analytics-js in Chromium with its defaults but for the address, the key, and the settings of a network that is not there.
// Runs until SIGTERM.
import { once } from 'node:events'
import { openPage } from './browser.mjs'

const [collector, writeKey, calls] = process.argv.slice(2)
const { page, close } = await openPage(import.meta.resolve('@rudderstack/analytics-js/bundled'))

await page.evaluate(
  async ({ collector, writeKey, calls: { identify, track, page, group, alias } }) => {
    const { RudderAnalytics } = await import('/script.js')
    const analytics = new RudderAnalytics()
    const config = { statsCollection: { errors: { enabled: false }, metrics: { enabled: false } } }
    analytics.load(writeKey, collector, {
      getSourceConfig: () => ({ source: { id: 'shop', writeKey, enabled: true, config, destinations: [] } }),
    })
    analytics.identify(identify.userId, identify.traits)
    analytics.track(track.event, track.properties)
    analytics.page(page.category, page.name, page.properties)
    analytics.group(group.groupId, group.traits)
    analytics.alias(alias.userId, alias.previousId)
  },
  { collector, writeKey, calls: JSON.parse(calls) },
)
await once(process, 'SIGTERM')
await close()

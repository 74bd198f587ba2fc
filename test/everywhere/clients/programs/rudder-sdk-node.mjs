// @rudderstack/rudder-sdk-node with its defaults but for the address and the key.
import Analytics from '@rudderstack/rudder-sdk-node'

const [dataPlaneUrl, writeKey, calls] = process.argv.slice(2)
const { identify, track, page, screen, group, alias } = JSON.parse(calls)

const analytics = new Analytics(writeKey, { dataPlaneUrl })
analytics.identify(identify)
analytics.track(track)
analytics.page(page)
analytics.screen(screen)
analytics.group(group)
analytics.alias(alias)
await analytics.flush()

// @segment/analytics-node with its defaults but for the address and the key.
import { Analytics } from '@segment/analytics-node'

const [host, writeKey, calls] = process.argv.slice(2)
const { identify, track, page, screen, group, alias } = JSON.parse(calls)

const analytics = new Analytics({ host, writeKey })
analytics.identify(identify)
analytics.track(track)
analytics.page(page)
analytics.screen(screen)
analytics.group(group)
analytics.alias(alias)
await analytics.closeAndFlush()

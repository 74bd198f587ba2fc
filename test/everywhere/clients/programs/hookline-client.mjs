// hookline/client, in the project that has installed it, with its defaults but for the address and the key.
import { createClient } from 'hookline/client'

const [collector, writeKey, calls] = process.argv.slice(2)
const { identify, track, page, screen, group, alias } = JSON.parse(calls)

const client = createClient(writeKey, { endpoint: `${collector}/v1/batch` })
client.identify(identify)
client.track(track)
client.page(page)
client.screen(screen)
client.group(group)
client.alias(alias)
await client.close({ timeoutMs: 60_000 })

/** Lambda, for events that are not HTTP: `node lambda.ts <file> <name of the handler> <file of events>`. Prints a line for each. */

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const [file = '', name = '', events = ''] = process.argv.slice(2)
const { [name]: handler } = await import(pathToFileURL(resolve(file)).href)

for (const event of JSON.parse(readFileSync(events, 'utf8'))) {
  const outcome = await handler(event).then(
    (result: unknown) => ({ result: result ?? null }),
    ({ code }: { code: unknown }) => ({ code }),
  )
  process.stdout.write(`outcome ${JSON.stringify(outcome)}\n`)
}

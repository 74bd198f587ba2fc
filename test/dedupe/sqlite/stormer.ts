/** A receiver in a process of its own that gets many copies of one message at once. Prints the statuses it answered. */

import { once } from 'node:events'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { sqliteDedupe } from '../../../src/dedupe/sqlite/index.ts'
import { createReceiver } from '../../../src/receiver/receiver.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { signedRequest } from '../../../src/testing/signed-request.ts'

const [, , path = '', copies = '0'] = process.argv
const dedupe = sqliteDedupe({ path, timeoutMs: 5000 })
const receiver = createReceiver({ secret: 'secret', dedupe, onError: () => {} })
receiver.on('track', async () => {
  await nextTurn()
  console.log('handled')
})
const { bytes, headers } = signedRequest(fixtures.track, 'secret')
console.log('open')
await once(process.stdin, 'data')
const answers = await Promise.all(Array.from({ length: Number(copies) }, () => receiver.receive(bytes, headers)))
for (const { status } of answers) console.log(status)
console.log('done')

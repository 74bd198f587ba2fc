/** A receiver on node:http, alone or with an inspector; its page is open where another process reads the stream. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createReceiver } from 'hookline'
import { createInspector } from 'hookline/inspector'
import { serve } from 'hookline/node'
import type { Contender } from '../contender.ts'
import { secret } from '../message.ts'
import { LOAD_CORE, spawnOn } from '../pin.ts'
import { handle, handled, listen, path } from './host.ts'

export type Watch = 'no inspector' | 'page closed' | 'page open'

export async function openContender(watch: Watch): Promise<Contender> {
  const receiver = createReceiver({ secret, onError: () => {} }).on('track', handle)
  const webhooks = serve(receiver, { path })
  if (watch === 'no inspector') {
    const port = await listen(createServer(webhooks))
    return { hello: port, figures: () => ({ handled: handled() }) }
  }
  const { handler } = createInspector({ receiver, authorize: () => 'read' })
  const server = createServer((request, response) => (request.url === path ? webhooks : handler)(request, response))
  const port = await listen(server)
  if (watch === 'page open') await openPage(port)
  return { hello: port, figures: () => ({ handled: handled() }) }
}

/** Reads the stream as a page does, in another process and on the other core, until this process ends. */
async function openPage(port: number): Promise<void> {
  const program = fileURLToPath(new URL('page.ts', import.meta.url))
  const page = spawnOn(LOAD_CORE, process.execPath, [program, `${port}`], { stdio: ['pipe', 'pipe', 'inherit'] })
  await once(page.stdout as NodeJS.ReadableStream, 'data')
}

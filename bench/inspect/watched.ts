/** A receiver on node:http, alone or with an inspector; its page is open where another process reads the stream. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import { fileURLToPath } from 'node:url'
import { createReceiver } from 'hookline'
import { createInspector } from 'hookline/inspector'
import { serve } from 'hookline/node'
import type { Contender } from '../contenders.ts'
import { handle, handled, path } from '../http/host.ts'
import { listen } from '../http/listen.ts'
import { secret } from '../message.ts'
import { LOAD_CORE, spawnOn } from '../pin.ts'

export type Watch = 'no inspector' | 'page closed' | 'page open'

export async function open(watch: Watch): Promise<Contender> {
  const receiver = createReceiver({ secret, onError: () => {} }).on('track', handle)
  const webhooks = serve(receiver, { path })
  if (watch === 'no inspector') {
    const port = await listen(createServer(webhooks))
    return { hello: port, figures: () => ({ handled: handled() }) }
  }
  const page = serve(createInspector({ receiver, authorize: () => 'read' }), { path: '/hookline' })
  const server = createServer((request, response) => (request.url === path ? webhooks : page)(request, response))
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

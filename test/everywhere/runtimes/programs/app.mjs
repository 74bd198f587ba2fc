// The receivers and the collector that each host of these tests serves, and what they saw.

import { createReceiver } from 'hookline'
import { createCollector } from 'hookline/collector'
import { memoryDedupe } from 'hookline/dedupe/memory'
import { serve } from 'hookline/fetch'

export const SECRET = 'everywhere'
const DEADLINE_MS = 500

/** Endpoints by their paths, and what they saw. */
export function createApp() {
  const seen = {}
  const hold = Promise.withResolvers()

  function receiverAt(path, options = {}) {
    seen[path] = { handled: [], errors: [] }
    const onError = ({ code }) => seen[path].errors.push(code)
    const receiver = createReceiver({ secret: SECRET, onError, ...options })
    return receiver.on('track', ({ event }) => seen[path].handled.push(event))
  }

  const receivers = {
    '/inline': receiverAt('/inline'),
    '/aborted': receiverAt('/aborted'),
    '/deadline': receiverAt('/deadline', { deadlineMs: DEADLINE_MS })
      .on('track', 'Wait', () => new Promise((resolve) => setTimeout(resolve, 10)))
      .on('track', 'Hang', () => new Promise(() => {})),
    '/batches': receiverAt('/batches', { batches: true }),
    '/dedupe': receiverAt('/dedupe', { dedupe: memoryDedupe() }),
    '/provider': receiverAt('/provider', { secret: async () => SECRET }),
    '/closing': receiverAt('/closing').on('track', 'Last', () => hold.promise),
  }

  seen['/v1/batch'] = { handled: [], errors: [] }
  const destination = {
    async submit(submissions) {
      for (const { message } of submissions) seen['/v1/batch'].handled.push(message.event)
      return submissions.map(() => ({ queued: true, id: '' }))
    },
  }
  const collector = createCollector({
    sources: [{ name: 'everywhere', writeKey: 'write-key', kind: 'server', destinations: [destination] }],
    onError: ({ code }) => seen['/v1/batch'].errors.push(code),
  })

  return {
    endpoints: { ...receivers, '/v1/batch': collector },
    seen,
    close: () => Promise.all(Object.values(receivers).map((receiver) => receiver.close())),
    release: hold.resolve,
  }
}

/** The same as one handler of Web Fetch. */
export function toFetch(app) {
  const handlers = new Map(Object.entries(app.endpoints).map(([path, endpoint]) => [path, serve(endpoint)]))
  return (request) => {
    const { pathname } = new URL(request.url)
    return handlers.get(pathname)?.(request) ?? control(app, pathname)
  }
}

/** What a test asks of the program beside the webhooks. */
export function control(app, path) {
  if (path === '/seen') return Response.json(app.seen)
  if (path === '/release') app.release()
  if (path === '/close') app.closed = app.close()
  return new Response(null, { status: 204 })
}

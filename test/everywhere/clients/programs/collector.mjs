// A collector as its guide says, in a project that has installed the package: a source and a durable destination a client.
// Each source first refuses every call as often as it is told, as when a queue is full.
import { createServer } from 'node:http'
import { HooklineError } from 'hookline'
import { createCollector } from 'hookline/collector'
import { serve } from 'hookline/node'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { createDestination } from 'hookline/sender'

const [path, receiver, sharedSecret, clients] = process.argv.slice(2)

/** Refuses each message a number of times before it passes it on. */
function refusing(destination, times) {
  const refusals = new Map()
  return {
    submit(submissions) {
      const ids = submissions.map(({ message }) => message.messageId).filter((id) => (refusals.get(id) ?? 0) < times)
      if (ids.length === 0) return destination.submit(submissions)
      for (const id of ids) refusals.set(id, (refusals.get(id) ?? 0) + 1)
      throw new HooklineError('queue_full', 'The queue is full. Got more jobs than it has room for. Send them later.')
    },
  }
}

const sources = Object.entries(JSON.parse(clients)).map(([name, refusals]) => {
  const queue = sqliteQueue({ path, name })
  const webhooks = [{ url: `${receiver}/${name}` }]
  const random = () => 0.1 // Soon, so that the test ends soon.
  const destination = createDestination({ webhooks, sharedSecret, queue, random })
  return { name, writeKey: `key-of-${name}`, destinations: [refusing(destination, refusals)] }
})

const server = createServer(serve(createCollector({ sources, onError: () => {} })))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))

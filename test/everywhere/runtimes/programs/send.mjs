// Sends to the endpoints of the test, whose URLs it is given, and prints what came of it.

import { createServer } from 'node:http'
import { createReceiver } from 'hookline'
import { createClient } from 'hookline/client'
import { createCollector } from 'hookline/collector'
import { serve } from 'hookline/node'
import { createDestination, createSender } from 'hookline/sender'
import { fixtures } from 'hookline/testing'
import { Agent } from 'undici/index.js'
import { runSteps } from './steps.mjs'

const peers = JSON.parse(process.argv[2])
const sharedSecret = 'everywhere'

/** The status or the error of one attempt, and how long it took. */
async function sendOnce(url, options = {}) {
  const sender = createSender({ webhooks: [{ url }], sharedSecret, ...options })
  const { attempts } = await sender.send(fixtures.track)
  await sender.close()
  const [{ status, error, durationMs }] = attempts
  return { result: status ?? error, durationMs }
}

const resultOf = async (url, options) => (await sendOnce(url, options)).result

/** What becomes of one message at a destination: the status after each round. */
async function deliver(url, options = {}, act = async () => {}) {
  const statuses = []
  const ended = Promise.withResolvers()
  const destination = createDestination({
    webhooks: [{ url }],
    sharedSecret,
    random: () => 0, // The shortest delays.
    onAttempt({ status, reason }) {
      statuses.push(reason ?? status)
      if (status !== 'retrying') ended.resolve()
    },
    ...options,
  })
  await destination.send(fixtures.track)
  await ended.promise
  await act(destination, statuses)
  await destination.close()
  return statuses
}

const steps = {
  send: () => resultOf(peers.ok),
  'connection refused': () => resultOf(peers.refused),
  reset: () => resultOf(peers.reset),
  'a status text without an end': () => resultOf(peers.endless),
  'an Agent of undici': async () => {
    const dispatcher = new Agent()
    const result = await resultOf(peers.ok, { dispatcher })
    await dispatcher.close()
    return result
  },
  garbage: () => resultOf(peers.garbage),
  timeout: () => sendOnce(peers.hang),
  'timeout of a response without an end': () => sendOnce(peers.drip),
  'private address': () => resultOf(peers.guarded, { allowPrivateAddresses: false }),
  'private address of a name': () => {
    const url = peers.guarded.replace('127.0.0.1', 'localhost')
    return resultOf(url, { allowPrivateAddresses: false })
  },
  retry: () => deliver(peers.retry),
  redrive: () =>
    deliver(peers.redrive, {}, async (destination, statuses) => {
      while ((await destination.redrive('all')) === 0) await new Promise((resolve) => setTimeout(resolve, 10))
      while (statuses.length < 2) await new Promise((resolve) => setTimeout(resolve, 10))
    }),
  circuit: async () => {
    const states = []
    const onCircuit = ({ state }) => states.push(state)
    const statuses = await deliver(peers.circuit, { circuit: { failures: 1 }, onCircuit })
    return { states, statuses }
  },
  'client, collector, destination, receiver': () => recordAndReceive(),
}
for (const { name, url, ca } of peers.tls) {
  steps[name] = async () => ({
    sender: await resultOf(url),
    trusting: await resultOf(url, { ca }),
    client: await record(url),
    trustingClient: await record(url, { ca }),
  })
}

/** The error of a client after one attempt. */
async function record(endpoint, options = {}) {
  let result = 'posted'
  const onError = ({ message }) => {
    result = message.match(/Got (\S+) /)[1]
  }
  const client = createClient('write-key', { endpoint, maxRetries: 0, onError, ...options })
  client.track({ userId: 'user-1', event: 'Event' })
  await client.close()
  return result
}

async function recordAndReceive() {
  const received = Promise.withResolvers()
  const receiver = createReceiver({ secret: sharedSecret }).on('track', ({ event }) => received.resolve(event))
  const webhooks = createServer(serve(receiver))
  const destination = createDestination({ webhooks: [{ url: await listen(webhooks) }], sharedSecret })
  const sources = [{ name: 'everywhere', writeKey: 'write-key', kind: 'server', destinations: [destination] }]
  const collector = createCollector({ sources })
  const collection = createServer(serve(collector))
  const client = createClient('write-key', { endpoint: `${await listen(collection)}/v1/batch`, flushAt: 20 })
  for (let index = 0; index < 50; index++) client.track({ userId: 'user-1', event: 'Order Completed' })
  const undelivered = await client.close()
  const event = await received.promise
  await destination.close()
  await receiver.close()
  for (const server of [webhooks, collection]) {
    server.close()
    server.closeAllConnections()
  }
  return { undelivered: undelivered.length, event }
}

async function listen(server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${server.address().port}`
}

await runSteps(steps)

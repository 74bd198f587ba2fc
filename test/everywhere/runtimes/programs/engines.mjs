// An inbox on an engine: handles a message, makes one a dead letter, redrives it, and closes.

import { createReceiver } from 'hookline'
import { fixtures, signedRequest } from 'hookline/testing'
import { runSteps } from './steps.mjs'

const [, , engine, name, url] = process.argv

const openers = {
  async bullmq() {
    const { bullmqQueue } = await import('hookline/queues/bullmq')
    return bullmqQueue({ name, connection: url, allowEviction: true })
  },
  async 'pg-boss'() {
    const { pgBossQueue } = await import('hookline/queues/pg-boss')
    return pgBossQueue({ name, connectionString: url, schema: name })
  },
  async kv() {
    const { kvQueue } = await import('./kv-queue.mjs')
    const kept = new Map()
    return kvQueue({ get: (key) => kept.get(key), put: (key, value) => kept.set(key, value) })
  },
}

await runSteps({
  async [engine]() {
    const secret = 'everywhere'
    const letter = Promise.withResolvers()
    const handled = Promise.withResolvers()
    const errors = []
    let calls = 0
    const receiver = createReceiver({
      secret,
      inbox: { queue: await openers[engine](), retries: [] },
      onDeadLetter: ({ reason }) => letter.resolve(reason),
      onError: ({ code }) => errors.push(code),
    })
    receiver.on('track', ({ event }) => {
      calls++
      if (calls === 1) throw new Error('the first attempt fails')
      handled.resolve(event)
    })
    receiver.start()
    const { body, headers } = signedRequest(fixtures.track, secret)
    const { status } = await receiver.receive(Buffer.from(body), headers)
    const reason = await letter.promise
    while ((await receiver.redrive('all')) === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    const event = await handled.promise
    await receiver.close()
    return { status, reason, event, errors }
  },
})

// Two processes after each other over the same files. `store` accepts messages and is killed; `resume` handles what it left.

import { createReceiver } from 'hookline'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { createDestination } from 'hookline/sender'
import { fixtures, signedRequest } from 'hookline/testing'
import { runSteps } from './steps.mjs'

const [, , part, directory, url] = process.argv
const secret = 'everywhere'
const never = new Promise(() => {})

const receive = async (receiver) => {
  const { body, headers } = signedRequest(JSON.stringify(fixtures.track), secret)
  return (await receiver.receive(Buffer.from(body), headers)).status
}

const inboxOn = (handler, options) => {
  const queue = sqliteQueue({ path: `${directory}/inbox.sqlite` })
  return createReceiver({ secret, inbox: { queue, ...options }, onError() {} }).on('track', handler)
}

const destinationOn = (options) => {
  const queue = sqliteQueue({ path: `${directory}/destination.sqlite` })
  return createDestination({ webhooks: [{ url }], sharedSecret: secret, queue, random: () => 0, ...options })
}

const store = {
  async inbox() {
    const handling = Promise.withResolvers()
    const receiver = inboxOn(() => {
      handling.resolve()
      return never
    })
    receiver.start()
    const status = await receive(receiver)
    await handling.promise
    return status
  },
  async destination() {
    const { queued } = await destinationOn({ onAttempt() {} }).send(fixtures.track)
    return queued
  },
}

const resume = {
  async inbox() {
    const letters = Promise.withResolvers()
    const handled = Promise.withResolvers()
    let calls = 0
    const handler = ({ event }) => {
      calls++
      if (calls === 1) throw new Error('the first attempt fails')
      handled.resolve(event)
    }
    const queue = sqliteQueue({ path: `${directory}/inbox.sqlite` })
    const onDeadLetter = ({ reason }) => letters.resolve(reason)
    const receiver = createReceiver({ secret, inbox: { queue, retries: [] }, onDeadLetter, onError() {} })
    receiver.on('track', handler).start()
    const reason = await letters.promise
    while ((await receiver.redrive('all')) === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    const event = await handled.promise
    const left = await receiver.close()
    return { reason, event, calls, left: left.length }
  },
  async destination() {
    const delivered = Promise.withResolvers()
    const destination = destinationOn({ onAttempt: ({ status }) => delivered.resolve(status) })
    const status = await delivered.promise
    await destination.close()
    return status
  },
}

await runSteps(part === 'store' ? store : resume)
if (part === 'store') {
  console.log(JSON.stringify({ step: 'stored' }))
  setInterval(() => {}, 1_000) // Until it is killed.
}

// A Worker of workerd: the receivers, and an inbox in a Durable Object.

import { DurableObject } from 'cloudflare:workers'
import { createReceiver, parse, sign, verify } from 'hookline'
import { createClient } from 'hookline/client'
import { serve } from 'hookline/fetch'
import { sqliteQueue } from 'hookline/queues/sqlite'
import { createDestination, createSender } from 'hookline/sender'
import { createApp, SECRET, toFetch } from './app.mjs'
import { kvQueue } from './kv-queue.mjs'

const fetchApp = toFetch(createApp())

/** Handles what it stored, also after a restart: an alarm of the storage would wake it. */
export class Inbox extends DurableObject {
  #handled = []
  #errors = []
  #receiver

  constructor(state, env) {
    super(state, env)
    const failed = new Set()
    this.#receiver = createReceiver({
      secret: SECRET,
      inbox: { queue: kvQueue(state.storage.kv), retries: [] },
      onError: ({ code }) => this.#errors.push(code),
    })
    this.#receiver.on('track', ({ event }) => {
      if (event === 'Hang') return new Promise(() => {})
      if (event === 'Fail once' && !failed.has(event)) {
        failed.add(event)
        throw new Error('the first attempt fails')
      }
      this.#handled.push(event)
    })
    this.#receiver.start()
  }

  async fetch(request) {
    const { pathname } = new URL(request.url)
    if (pathname === '/inbox') return serve(this.#receiver)(request)
    if (pathname === '/inbox/redrive') return Response.json(await this.#receiver.redrive('all'))
    const letters = await this.#receiver.deadLetters()
    return Response.json({
      handled: this.#handled,
      errors: this.#errors,
      letters: letters.map(({ reason }) => reason),
      health: await this.#receiver.health(),
    })
  }
}

export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url)
    if (pathname.startsWith('/inbox')) return env.INBOX.get(env.INBOX.idFromName('inbox')).fetch(request)
    if (pathname === '/functions') return Response.json(callFunctions())
    return fetchApp(request)
  },
}

function callFunctions() {
  const bytes = new TextEncoder().encode('{"type":"delete","userId":"user-1"}')
  const signature = sign(bytes, SECRET)
  const url = 'https://localhost/'
  return {
    signature,
    verified: [verify(bytes, signature, SECRET), verify(bytes, signature, 'another')],
    parsed: parse(bytes),
    refusals: {
      sender: refusalOf(() => createSender({ webhooks: [{ url }] })),
      destination: refusalOf(() => createDestination({ webhooks: [{ url }] })),
      client: refusalOf(() => createClient('write-key', { endpoint: url })),
      queue: refusalOf(() => sqliteQueue({ path: '/tmp/inbox.sqlite' })),
    },
  }
}

function refusalOf(call) {
  try {
    call()
    return 'none'
  } catch ({ name, message }) {
    return `${name}: ${message}`
  }
}

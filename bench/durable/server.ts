/** A receiver on node:http in a process of its own, and how late its event loop was. */

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { createReceiver } from 'hookline'
import { serve } from 'hookline/node'
import { path } from '../http/contenders.ts'
import { secret } from '../message.ts'
import { openBare } from './bare.ts'
import { openQueue, type Place } from './place.ts'

/**
 * What receives: `inline`, a handler that does nothing, before the answer; `accepting`, an inbox that nobody works on;
 * `working`, an inbox and the same handler, in this process; `bulk`, as inline, with a handler that gives the bytes to the
 * bare engine and waits for it.
 */
export type ContenderName = 'inline' | 'accepting' | 'working' | 'bulk'

const [, , contender, placeText = ''] = process.argv as [string, string, ContenderName, string]
const place = JSON.parse(placeText) as Place
const CONCURRENCY = 50

let count = 0
/** The load is the same bytes over and over; each counts as a message of its own. */
const key = () => `${place.name}-${count++}`

async function createContender() {
  if (contender === 'inline') return createReceiver({ secret }).on('track', () => {})
  if (contender === 'bulk') {
    const add = collect(await openBare(place))
    return createReceiver({ secret }).on('track', (_message, { bytes }) => add(bytes))
  }
  const inbox = { queue: await openQueue(place), concurrency: CONCURRENCY, key }
  const receiver = createReceiver({ secret, inbox }).on('track', () => {})
  if (contender === 'working') receiver.start()
  return receiver
}

/** What arrives while one batch is on its way is the next batch. */
function collect({ add }: Awaited<ReturnType<typeof openBare>>): (body: Uint8Array) => Promise<void> {
  let waiting: Uint8Array[] = []
  let next: Promise<void> | undefined
  let underWay: Promise<void> = Promise.resolve()
  return (body) => {
    waiting.push(body)
    next ??= underWay.then(() => {
      const bodies = waiting
      waiting = []
      next = undefined
      underWay = add(bodies)
      return underWay
    })
    return next
  }
}

const receiver = await createContender()
const RESOLUTION_MS = 1
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()

const server = createServer(serve(receiver, { path }))
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))

/** Answers how late the loop was since the last question, in milliseconds, of a hundred looks all but one. */
process.on('message', () => {
  process.send?.(delay.percentile(99) / 1e6 - RESOLUTION_MS)
  delay.reset()
})
process.on('disconnect', () => process.exit())

/** The collector on node:http, against a server that reads the body, parses it and answers. */

import { fileURLToPath } from 'node:url'
import { type Child, startChild } from '../child.ts'
import { keepAwake, LOAD_CORE, SERVER_CORE } from '../http/pin.ts'
import { median, printTable, spread } from '../table.ts'
import type { ServerName, Usage } from './collector-server.ts'
import { authorization, BATCH, batchBody } from './message.ts'
import { CONCURRENCY } from './parallel.ts'
import { cpuOf, ratesOf, ratiosOf, share, type Turns } from './turns.ts'
import type { Effort, Order } from './worker.ts'
import { startWorker } from './worker-process.ts'

/** Prints messages a second of both, and CPU time a message. No target: nobody else's collector is measured. */
export async function compareCollector(rounds: number, messages: number): Promise<void> {
  const slice = share(messages, 1)
  const turns = await measure(rounds, slice)
  console.log('## The collector on node:http\n')
  console.log(
    `Batches of ${BATCH} messages, ${batchBody().length} bytes, ${CONCURRENCY} connections, ${rounds} slices of ${slice} messages. ` +
      'Ratio: Hookline to bare, slice by slice, median (least–greatest).\n',
  )
  printTable(
    ['', 'bare', 'Hookline', 'ratio'],
    [row('messages/s', ratesOf(turns), 0), row('CPU µs a message', cpuOf(turns), 2)],
  )
}

function row(title: string, [theirs, ours]: readonly [number[], number[]], digits: number): string[] {
  return [title, median(theirs).toFixed(digits), median(ours).toFixed(digits), spread(ratiosOf(ours, theirs))]
}

async function measure(rounds: number, messages: number): Promise<Turns> {
  const started: Child[] = []
  const letSleep = keepAwake(LOAD_CORE)
  try {
    const bare = await startServer('bare', started)
    const collector = await startServer('collector', started)
    const turns: Turns & { theirs: Effort[]; ours: Effort[] } = { messages, theirs: [], ours: [] }
    for (let round = 0; round <= rounds; round++) {
      const [one, other] = [await bare(messages), await collector(messages)]
      if (round === 0) continue // Warms up.
      turns.theirs.push(one)
      turns.ours.push(other)
    }
    return turns
  } finally {
    for (const child of started) await child.stop()
    letSleep()
  }
}

/** Starts a server and its load. Returns what sends it so many messages, and says how long that took and what CPU time. */
async function startServer(name: ServerName, started: Child[]): Promise<(messages: number) => Promise<Effort>> {
  const program = fileURLToPath(new URL('collector-server.ts', import.meta.url))
  const [server, port] = await startChild<number>(SERVER_CORE, [program, name])
  started.push(server)
  const url = `http://127.0.0.1:${port}/v1/batch`
  await validate(name, url)
  const load = await startWorker('bare', url, 'batch')
  started.push(load)

  return async (messages) => {
    const before = await server.ask<Usage>('usage')
    const { seconds } = await load.ask<Effort>({ send: messages / BATCH } satisfies Order)
    const after = await server.ask<Usage>('usage')
    const arrived = after.messages - before.messages
    if (arrived !== messages) throw new Error(`${name} was sent ${messages} messages, and took ${arrived}.`)
    return { seconds, cpu: after.cpu - before.cpu }
  }
}

/** @throws Error when a batch is not answered as it should be, or the collector takes one of a stranger. */
async function validate(name: ServerName, url: string): Promise<void> {
  const printed = await post(url, authorization)
  if (printed !== `200 {"success":true,"accepted":${BATCH},"refused":[]}`)
    throw new Error(`${name} answered ${printed}`)
  if (name === 'bare') return
  const refused = await post(url, `Basic ${btoa('a stranger:')}`)
  if (!/^4\d\d /.test(refused)) throw new Error(`${name} answered a stranger ${refused}`)
}

async function post(url: string, shown: string): Promise<string> {
  const headers = { 'content-type': 'application/json', authorization: shown }
  const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(batchBody()) })
  return `${response.status} ${await response.text()}`
}

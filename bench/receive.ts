/** What one `receiver.receive()` costs beyond what it cannot do without: one hash of the bytes and JSON.parse. */

import { hash } from 'node:crypto'
import type { Receiver } from 'hookline'
import { event, identifyMessage, secret, signedHeaders, trackMessage } from './message.ts'
import { median, printTable, spread, verdict } from './table.ts'

const SIZES = [300, 1024, 10 * 1024, 100 * 1024]
const TARGET = { ratio: 1.3, fromSize: 1024 }
const MANY = 1000
const FLAT: Readonly<Record<string, { ratio: number; body: Buffer; register: Register }>> = {
  'event names': {
    ratio: 1.05,
    body: trackMessage(1024),
    register: (receiver, i) => receiver.on('track', `${event} ${i}`, () => {}),
  },
  audiences: {
    ratio: 1.2,
    body: Buffer.from(JSON.stringify(identifyMessage)),
    register: (receiver, i) => receiver.onAudience(`audience ${i}`, { entered: () => {}, exited: () => {} }),
  },
}
const SLICE_MS = 40
const SLICES_A_ROUND = 5

/** Prints the cost of one call by size of the body, and by how many event names and audiences are registered. */
export async function compareWithFloor(rounds: number): Promise<void> {
  console.log('## One receive(), ns\n')
  console.log('Against crypto.hash of the bytes, once, and JSON.parse of their text; median (least–greatest).\n')
  const rows: string[][] = []
  for (const size of SIZES) {
    const body = trackMessage(size)
    const timings = await interleave([floor(body), await receive(body)], rounds)
    const isHeld = size >= TARGET.fromSize
    const verdictOfSize = (ratio: number): string => (isHeld ? verdict(ratio <= TARGET.ratio) : '')
    rows.push(rowOf(`${size} B`, timings, isHeld ? `≤ ${TARGET.ratio}` : '–', verdictOfSize))
  }
  printTable(['body', 'floor', 'receive', 'ratio', 'target', ''], rows)

  const flat: string[][] = []
  for (const [what, { ratio: most, body, register }] of Object.entries(FLAT)) {
    const timings = await interleave([await receive(body), await receive(body, register)], rounds)
    flat.push(rowOf(`${MANY} ${what}`, timings, `flat: ≤ ${most}`, (ratio) => verdict(ratio <= most)))
  }
  printTable(['registered', 'without', 'with', 'ratio', 'target', ''], flat)
}

/** Registers the handler with the number `i`. */
type Register = (receiver: Receiver, i: number) => void

/** Does its work so many times. */
type Repeat = (times: number) => unknown

function floor(body: Buffer): Repeat {
  return (times) => {
    let sum = 0
    for (let i = 0; i < times; i++) {
      sum += hash('sha1', body).length
      sum += JSON.parse(body.toString()).version
    }
    return sum
  }
}

async function receive(body: Buffer, register?: Register): Promise<Repeat> {
  const { createReceiver } = await import('hookline') // Not before it is built.
  const receiver = createReceiver({ secret }).on(['track', 'identify'], () => {})
  for (let i = 0; i < MANY; i++) register?.(receiver, i)
  const headers = signedHeaders(body)
  const { status } = await receiver.receive(body, headers)
  if (status !== 200) throw new Error(`receive answered ${status}`)
  return async (times) => {
    for (let i = 0; i < times; i++) await receiver.receive(body, headers)
  }
}

/** Times two things in turns, slice by slice, so that both see the same machine. Returns ns a run, by slice. */
async function interleave(pair: readonly [Repeat, Repeat], rounds: number): Promise<[number[], number[]]> {
  const timings: [number[], number[]] = [[], []]
  const times = [await timesInSlice(pair[0]), await timesInSlice(pair[1])] as const
  for (let slice = 0; slice < rounds * SLICES_A_ROUND; slice++) {
    timings[0].push(await time(pair[0], times[0]))
    timings[1].push(await time(pair[1], times[1]))
  }
  return timings
}

async function time(repeat: Repeat, times: number): Promise<number> {
  const start = process.hrtime.bigint()
  await repeat(times)
  return Number(process.hrtime.bigint() - start) / times
}

/** Doubles until a slice is long enough, which also warms up. */
async function timesInSlice(repeat: Repeat): Promise<number> {
  for (let times = 128; ; times *= 2) {
    const perRun = await time(repeat, times)
    if (perRun * times > 4 * SLICE_MS * 1e6) return Math.ceil((SLICE_MS * 1e6) / perRun)
  }
}

function rowOf(
  name: string,
  [theirs, ours]: readonly [readonly number[], readonly number[]],
  target: string,
  verdictOf: (ratio: number) => string,
): string[] {
  const ratios = ours.map((ns, slice) => ns / (theirs[slice] ?? Number.NaN))
  return [name, median(theirs).toFixed(0), median(ours).toFixed(0), spread(ratios), target, verdictOf(median(ratios))]
}

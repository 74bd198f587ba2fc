/** Answers with an inbox: against the same receiver inline, and against the bare engine behind the same receiver. */

import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import { path } from '../http/contenders.ts'
import { generator, startLoad } from '../http/load.ts'
import { BODY_SIZE } from '../http/measure.ts'
import { keepAwake, LOAD_CORE } from '../http/pin.ts'
import { signedHeaders, trackMessage } from '../message.ts'
import { median, printTable, spread, verdict } from '../table.ts'
import { type EngineName, titles } from './place.ts'
import type { ContenderName } from './server.ts'
import { isThere, onSite } from './site.ts'

interface Figures {
  /** Answers a second. */
  readonly rate: number
  /** Of the answers, in milliseconds. */
  readonly p99: number
  /** Of the event loop's delay, in milliseconds. */
  readonly delay: number
}

const WARM_UP_MS = 2_000
const LEAST_RATE = 0.85
const MOST_TIME = 3

/** What an engine is compared with. */
const peers: Readonly<Record<EngineName, ContenderName>> = { sqlite: 'inline', bullmq: 'bulk', 'pg-boss': 'bulk' }

/** Runs the comparison and prints it. */
export async function compareInboxes(engines: readonly EngineName[], rounds: number, seconds: number): Promise<void> {
  console.log('## Answers with an inbox\n')
  console.log(
    `A track message of ${BODY_SIZE} bytes, 50 connections, ${generator}, ${rounds} rounds of ${seconds} s. Ratio: the inbox to its ` +
      'peer within a round, median (least–greatest).\n',
  )
  const letSleep = keepAwake(LOAD_CORE)
  try {
    const rows: string[][] = []
    for (const engine of engines) {
      if (await isThere(engine)) rows.push(...(await compareEngine(engine, rounds, seconds)))
      else rows.push([titles[engine], 'left out: no server answers'])
    }
    printTable(['inbox', 'measured', 'peer', 'peer', 'inbox', 'ratio', 'target', ''], rows)
  } finally {
    letSleep()
  }
}

async function compareEngine(engine: EngineName, rounds: number, seconds: number): Promise<string[][]> {
  const theirs = peers[engine]
  const contenders: readonly ContenderName[] = [theirs, 'accepting', 'working']
  const figures = new Map<ContenderName, Figures[]>()
  for (let round = 1; round <= rounds; round++) {
    for (const contender of contenders) {
      const measured = await measure(engine, contender, seconds)
      figures.set(contender, [...(figures.get(contender) ?? []), measured])
      const { rate, p99, delay } = measured
      console.error(
        `round ${round} of ${rounds}: ${engine} ${contender} ${rate.toFixed(0)}/s, ${p99} ms, ${delay.toFixed(2)} ms`,
      )
    }
  }
  return (['accepting', 'working'] as const).flatMap((ours) => {
    const isAimedAt = ours === 'accepting' || engine === 'sqlite'
    const row = (measured: keyof Figures, title: string, digits: number, target?: 'rate' | 'time'): string[] => {
      const [our, their] = [ours, theirs].map((name) =>
        (figures.get(name) ?? []).map((figure) => figure[measured]),
      ) as [number[], number[]]
      const ratios = our.map((value, round) => value / (their[round] ?? Number.NaN))
      const cells = [median(their).toFixed(digits), median(our).toFixed(digits), spread(ratios)]
      return [
        `${titles[engine]}, ${ours}`,
        title,
        theirs,
        ...cells,
        ...aim(median(ratios), isAimedAt ? target : undefined),
      ]
    }
    const isTimed = engine === 'sqlite' ? 'time' : undefined
    return [
      row('rate', 'answers/s', 0, 'rate'),
      row('p99', 'p99, ms', 2, isTimed),
      row('delay', 'event loop p99, ms', 2, isTimed),
    ]
  })
}

function aim(ratio: number, target: 'rate' | 'time' | undefined): string[] {
  if (target === undefined) return ['–', '']
  return target === 'rate'
    ? [`≥ ${LEAST_RATE}`, verdict(ratio >= LEAST_RATE)]
    : [`≤ ${MOST_TIME}`, verdict(ratio <= MOST_TIME)]
}

/** Starts one server alone on a new store, warms it up, and looks at its answers. */
function measure(engine: EngineName, contender: ContenderName, seconds: number): Promise<Figures> {
  return onSite(engine, async (place) => {
    const program = fileURLToPath(new URL('server.ts', import.meta.url))
    const [server, port] = await startChild<number>(undefined, [program, contender, JSON.stringify(place)])
    try {
      const body = trackMessage(BODY_SIZE)
      const start = () => startLoad(`http://127.0.0.1:${port}${path}`, signedHeaders(body), body)
      const warmUp = start()
      await wait(WARM_UP_MS)
      await warmUp.stop()
      await server.ask('delay')
      const load = start()
      await wait(seconds * 1_000)
      const printed = await load.stop()
      return { ...readFigures(printed), delay: await server.ask<number>('delay') }
    } finally {
      await server.stop()
    }
  })
}

/** From what wrk or autocannon printed. */
function readFigures(printed: string): Omit<Figures, 'delay'> {
  if (generator === 'wrk') {
    const [, p99 = '', unit = ''] = /99%\s+([\d.]+)(us|ms|s)/.exec(printed) ?? []
    const [, rate = ''] = /Requests\/sec:\s+([\d.]+)/.exec(printed) ?? []
    return { rate: Number(rate), p99: Number(p99) * ({ us: 0.001, ms: 1, s: 1_000 }[unit] ?? Number.NaN) }
  }
  const { requests, latency } = JSON.parse(printed) as { requests: { average: number }; latency: { p99: number } }
  return { rate: requests.average, p99: latency.p99 }
}

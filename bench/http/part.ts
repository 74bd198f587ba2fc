/** What a request costs: each framework with Hookline, against its least that verifies and parses; and with an inspector. */

import { SERVER_CORE } from '../pin.ts'
import { compare, figures, type Plan, type RoundOptions } from '../rounds.ts'
import type { Framework, ServerKind } from './servers.ts'
import { startServer } from './start.ts'
import type { Watch } from './watched.ts'

const frameworks: readonly Framework[] = ['node', 'fastify', 'koa', 'express']
const MAX_CPU = 1.08
/** A turn that begins after a pause keeps its first 200 messages, as a developer wants: this is about a load that lasts. */
const WATCHED_TURN = 20_000

/** All servers of a framework are up at once, on one core, each with a load of its own on the other. */
export async function compareServers(options: RoundOptions): Promise<void> {
  await compare('A request with a track message of 1 KB, 50 connections', frameworks.map(planOf), options)
}

function planOf(framework: Framework): Plan {
  const [floor, ours] = [`${framework}, floor`, framework]
  const entry = (kind: ServerKind) => (checkout?: string) =>
    startServer(new URL('servers.ts', import.meta.url), [framework, kind], { core: SERVER_CORE, checkout })
  return {
    entries: { [floor]: { start: entry('floor') }, [ours]: { start: entry('hookline'), isOurs: true } },
    rows: [{ of: ours, to: floor, figure: figures.cpu, atMost: MAX_CPU }],
  }
}

/** What an inspector costs the receiver that it watches: with its page closed, and with one open. */
export async function compareInspectors(options: RoundOptions): Promise<void> {
  const entry = (watch: Watch) => ({
    start: (checkout?: string) =>
      startServer(new URL('watched.ts', import.meta.url), [watch], { core: SERVER_CORE, checkout }),
    isOurs: true as const,
  })
  const plan: Plan = {
    entries: {
      'no inspector': entry('no inspector'),
      'page closed': entry('page closed'),
      'page open': entry('page open'),
    },
    messages: WATCHED_TURN,
    rows: [
      { of: 'page closed', to: 'no inspector', figure: figures.cpu, atMost: 1.3 },
      { of: 'page open', to: 'no inspector', figure: figures.cpu },
    ],
  }
  await compare('A request with a track message of 1 KB, 50 connections, with an inspector', [plan], options)
}

/** What a request costs each framework with Hookline, against the framework with the least that verifies and parses. */

import { SERVER_CORE } from '../pin.ts'
import { compare, figures, type Plan, type RoundOptions } from '../rounds.ts'
import { startServer } from '../start.ts'
import type { Framework, ServerKind } from './servers.ts'

const frameworks: readonly Framework[] = ['node', 'fastify', 'koa', 'express']
const MAX_CPU = 1.08

/** All servers of a framework are up at once, on one core, each with a load of its own on the other. */
export async function compareServers(options: RoundOptions): Promise<void> {
  await compare('A request with a track message of 1 KB, 50 connections', frameworks.map(planOf), options)
}

function planOf(framework: Framework): Plan {
  const [floor, ours] = [`${framework}, floor`, framework]
  const entry = (kind: ServerKind) => (checkout?: string) =>
    startServer('server', [framework, kind], { core: SERVER_CORE, checkout })
  return {
    entries: { [floor]: { start: entry('floor') }, [ours]: { start: entry('hookline'), isOurs: true } },
    rows: [{ of: ours, to: floor, figure: figures.cpu, atMost: MAX_CPU }],
  }
}

/** One of the servers, as a contender whose requests come from elsewhere. */

import type { Contender } from '../contenders.ts'
import { handled } from './host.ts'
import { listen } from './listen.ts'
import { type Framework, type ServerKind, servers } from './servers.ts'

export async function open(framework: Framework, kind: ServerKind): Promise<Contender> {
  const server = await servers[framework][kind]()
  return { hello: await listen(server), figures: () => ({ handled: handled() }) }
}

/** Which file may import which: floors, siblings and cycles, read from the imports themselves. */

import { posix } from 'node:path'
import ts from 'typescript'

/** Source texts by path from the root of the repository. */
export type Sources = ReadonlyMap<string, string>

/** The floor of each folder of src; a folder imports only from floors below its own. */
const FLOORS: Readonly<Record<string, number>> = {
  protocol: 0,
  queues: 1,
  dedupe: 1,
  receiver: 2,
  sender: 2,
  client: 2,
  collector: 3,
  testing: 3,
  otel: 3,
}
const TOP = 4

/** Folders of interchangeable siblings, and the files that those share. */
const FAMILIES: Readonly<Record<string, readonly string[]>> = {
  'src/queues': [
    'queue.ts',
    'job-id.ts',
    'loop.ts',
    'alarm.ts',
    'patience.ts',
    'handle-job.ts',
    'arguments.ts',
    'fifo.ts',
    'time-heap.ts',
    'known-ids.ts',
    'dead-list.ts',
    'memory-options.ts',
    'memory-store.ts',
    'sqlite-options.ts',
    'sqlite-schema.ts',
    'sqlite-calls.ts',
    'sqlite-messages.ts',
    'sqlite-damage.ts',
    'sqlite-id.ts',
    'sqlite-ids.ts',
    'sqlite-tally.ts',
    'sqlite-owners.ts',
    'sqlite-claims.ts',
    'sqlite-jobs.ts',
    'sqlite-dead.ts',
    'sqlite-store.ts',
    'sqlite-host.ts',
    'sqlite-worker.ts',
    'sqlite-thread.ts',
    'sqlite-queue.ts',
    'bullmq-options.ts',
    'bullmq-connection.ts',
    'bullmq-job.ts',
    'bullmq-fence.ts',
    'bullmq-intake.ts',
    'bullmq-due.ts',
    'bullmq-dead.ts',
    'bullmq-worker.ts',
    'bullmq-queue.ts',
    'pg-boss-options.ts',
    'pg-boss-error.ts',
    'pg-boss-row.ts',
    'pg-boss-batches.ts',
    'pg-boss-connection.ts',
    'pg-boss-sql.ts',
    'pg-boss-pushes.ts',
    'pg-boss-settle.ts',
    'pg-boss-store.ts',
    'pg-boss-dead.ts',
    'pg-boss-statistics.ts',
  ],
  'src/dedupe': ['dedupe.ts', 'settings.ts', 'expiring.ts', 'sqlite-file.ts'],
  adapters: ['fastify-types.ts', 'mount.ts', 'body.ts', 'node-http.ts'],
}

/** Every import that goes up, sideways or round in a circle, one readable line each. */
export function findViolations(sources: Sources): string[] {
  const graph = new Map([...sources].map(([path, text]) => [path, readImports(path, text)]))
  const violations: string[] = []
  for (const [from, targets] of graph) {
    for (const to of targets) {
      const reason = refuse(from, to, sources)
      if (reason !== undefined) violations.push(`${from} → ${to}: ${reason}`)
    }
  }
  return [...violations, ...findCycles(graph)]
}

/** What a file imports of this repository, type-only, dynamic and re-exported included: paths from its root. */
function readImports(path: string, text: string): string[] {
  const { importedFiles, referencedFiles } = ts.preProcessFile(text, true, true)
  const specifiers = [...importedFiles, ...referencedFiles].map(({ fileName }) => fileName)
  return specifiers
    .filter((specifier) => /^(\.|hookline(\/|$))/.test(specifier))
    .map((specifier) => (specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : specifier))
}

function refuse(from: string, to: string, sources: Sources): string | undefined {
  if (to.startsWith('hookline')) return 'imports the package by its own name'
  if (!sources.has(to)) return 'is no source file'
  const folder = posix.dirname(from)
  if (posix.dirname(to) === folder) return refuseSibling(from, to, FAMILIES[folder])
  if (to.startsWith('adapters/')) return 'only adapters import adapters'
  if (from.startsWith('adapters/'))
    return to.startsWith('src/protocol/') ? undefined : 'adapters import src/protocol only'
  const [above, below] = [floorOf(from), floorOf(to)]
  if (above === undefined || below === undefined) return 'a folder without a floor'
  if (below > above) return `goes up, from floor ${above} to floor ${below}`
  if (below === above) return `goes sideways on floor ${above}`
  return undefined
}

function refuseSibling(from: string, to: string, shared: readonly string[] | undefined): string | undefined {
  if (shared === undefined || shared.includes(posix.basename(to))) return undefined
  return shared.includes(posix.basename(from)) ? 'a shared file imports a sibling' : 'goes sideways, to a sibling'
}

function floorOf(path: string): number | undefined {
  const [, folder, file] = path.split('/')
  return file === undefined ? TOP : FLOORS[folder ?? '']
}

/** Every circle of imports, found from the file that closes it. */
function findCycles(graph: ReadonlyMap<string, readonly string[]>): string[] {
  const cycles: string[] = []
  const done = new Set<string>()

  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path)
    if (start !== -1) cycles.push(`${[...trail.slice(start), path].join(' → ')}: a cycle`)
    if (start !== -1 || done.has(path)) return
    for (const target of graph.get(path) ?? []) visit(target, [...trail, path])
    done.add(path)
  }

  for (const path of graph.keys()) visit(path, [])
  return cycles
}

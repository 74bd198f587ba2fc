/** Which file may import which, by path alone: imports go down, never up, sideways or round in a circle. */

import { posix } from 'node:path'
import ts from 'typescript'

/** Source texts by path from the root of the repository. */
export type Sources = ReadonlyMap<string, string>

const LAYERS: Readonly<Record<string, number>> = {
  message: 0,
  time: 0,
  sqlite: 0,
  collections: 0,
  options: 1,
  http: 1,
  queues: 2,
  dedupe: 2,
  handling: 2,
  'request-log': 2,
  inbox: 3,
  sender: 3,
  client: 3,
  receiver: 4,
  destination: 4,
  collector: 5,
  otel: 5,
  testing: 6,
  inspector: 7,
  cli: 8,
}
/** The files of src itself: faces of subpaths, which only re-export. */
const FACES = 9
const ADAPTERS_REACH = 1

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
  if (to === 'package.json' || to.endsWith('.css')) return undefined
  if (!sources.has(to)) return 'is no source file'
  return from.startsWith('adapters/') ? refuseOfAdapter(from, to) : refuseOfSource(from, to)
}

function refuseOfAdapter(from: string, to: string): string | undefined {
  if (to.startsWith('adapters/shared/')) return undefined
  if (to.startsWith('adapters/')) {
    return from.startsWith('adapters/shared/') ? 'goes up, to a member of the family' : 'goes sideways, to a sibling'
  }
  const layer = layerOf(to)
  if (layer !== undefined && layer <= ADAPTERS_REACH) return undefined
  return `adapters import layers 0 to ${ADAPTERS_REACH} only`
}

function refuseOfSource(from: string, to: string): string | undefined {
  if (to === 'adapters/node.ts' && /^src\/(testing|cli)\//.test(from)) return undefined // They serve endpoints as an app does.
  if (to.startsWith('adapters/')) return 'only adapters import adapters'
  const [above, below] = [layerOf(from), layerOf(to)]
  if (above === undefined || below === undefined) return 'a folder without a layer'
  if (below > above) return `goes up, from layer ${above} to layer ${below}`
  if (below < above) return undefined
  const [folder, target] = [posix.dirname(from), posix.dirname(to)]
  if (folder === target) return undefined
  if (folder.split('/')[1] !== target.split('/')[1]) return `goes sideways on layer ${above}`
  if (folder.startsWith(`${target}/`)) return undefined
  return target.startsWith(`${folder}/`) ? 'goes up, to a member of the family' : 'goes sideways, to a sibling'
}

function layerOf(path: string): number | undefined {
  const [, folder, file] = path.split('/')
  return file === undefined ? FACES : LAYERS[folder ?? '']
}

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

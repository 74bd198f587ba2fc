/** Which file may import which, by path alone: imports go down, never up, sideways or round in a circle. */

import { posix } from 'node:path'
import ts from 'typescript'

/** Source texts by path from the root of the repository. */
export type Sources = ReadonlyMap<string, string>

const LAYERS: Readonly<Record<string, number>> = {
  protocol: 0,
  kit: 1,
  host: 2,
  store: 2,
  receive: 3,
  send: 3,
  collect: 4,
  observe: 5,
  testing: 6,
}
/** The files of src itself: faces of subpaths, which only re-export. */
const FACES = 7
/** What the tools need and users do not: a list that a person can read. */
const INTERNALS = 'src/internals.ts'
const PAGE_SERVER = 'tools/inspector/src/page-server.ts'
const MAX_INTERNALS = 45
/** What the tools share. */
const SHARED = /^tools\/[^/]+\.ts$/
const ADAPTERS_REACH = ['protocol', 'kit', 'host']

export function findViolations(sources: Sources): string[] {
  const graph = readGraph(sources)
  const violations: string[] = []
  for (const [from, targets] of graph) {
    for (const to of targets) {
      const reason = refuse(from, to, sources)
      if (reason !== undefined) violations.push(`${from} → ${to}: ${reason}`)
    }
  }
  return [...violations, ...findCycles(sources), ...findHidden(sources.get(INTERNALS) ?? '')]
}

/** The internals are names one by one, each from where it is declared: no whole modules, and nothing that is made here. */
function findHidden(text: string): string[] {
  const { statements } = ts.createSourceFile(INTERNALS, text, ts.ScriptTarget.Latest)
  let count = 0
  for (const statement of statements) {
    const isList = ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined
    const clause = isList ? statement.exportClause : undefined
    if (clause === undefined || !ts.isNamedExports(clause)) return [`${INTERNALS}: holds more than lists of names`]
    count += clause.elements.length
  }
  return count <= MAX_INTERNALS ? [] : [`${INTERNALS}: ${count} names, and at most ${MAX_INTERNALS} are allowed`]
}

function readGraph(sources: Sources): ReadonlyMap<string, readonly string[]> {
  return new Map([...sources].map(([path, text]) => [path, readImports(path, text)]))
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
  if (to === 'package.json' || to.endsWith('.css')) return undefined
  if (from.startsWith('tools/')) return refuseOfTool(from, to)
  if (to.startsWith('hookline')) return 'imports the package by its own name'
  if (!sources.has(to)) return 'is no source file'
  if (to === INTERNALS) return 'only tools import the internals'
  return from.startsWith('adapters/') ? refuseOfAdapter(from, to) : refuseOfSource(from, to)
}

/** A tool stands on the public names of the package, on the internals, and on what tools share and itself; the command serves the page by one file of it. */
function refuseOfTool(from: string, to: string): string | undefined {
  if (to.startsWith('hookline') || to === INTERNALS || SHARED.test(to)) return undefined
  const [tool, target] = [from, to].map((path) => /^tools\/[^/]+\//.exec(path)?.[0])
  if (target === undefined) return 'tools import public names and the internals only'
  return tool === target || to === PAGE_SERVER ? undefined : 'goes sideways, to a sibling'
}

function refuseOfAdapter(from: string, to: string): string | undefined {
  if (to.startsWith('adapters/shared/')) return undefined
  if (to.startsWith('adapters/')) {
    return from.startsWith('adapters/shared/') ? 'goes up, to a member of the family' : 'goes sideways, to a sibling'
  }
  const [, room, file] = to.split('/')
  if (file !== undefined && ADAPTERS_REACH.includes(room ?? '')) return undefined
  return `adapters import ${ADAPTERS_REACH.join(', ')} only`
}

function refuseOfSource(from: string, to: string): string | undefined {
  if (to === 'adapters/node.ts' && /^src\/testing\//.test(from)) return undefined // It serves endpoints as an app does.
  if (to.startsWith('adapters/')) return 'only adapters import adapters'
  if (to.startsWith('tools/')) return 'is no layer of the library'
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

/** Finds files that import each other in a circle. */
export function findCycles(sources: Sources): string[] {
  const graph = readGraph(sources)
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

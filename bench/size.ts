/** What importing `hookline`, and nothing else, adds to a program: bytes and time. */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { buildSync } from 'esbuild'
import { median, printTable, verdict } from './table.ts'

const TARGET_BYTES = 12 * 1024
const PROCESSES = 25

/** Bundles everything `hookline` exports, dependencies included, and prints its size and the time its import takes. */
export function printSize(): void {
  const directory = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    const bundle = join(directory, 'bundle.mjs')
    const empty = join(directory, 'empty.mjs')
    buildSync({
      stdin: { contents: "export * from 'hookline'", resolveDir: process.cwd() },
      outfile: bundle,
      bundle: true,
      minify: true,
      format: 'esm',
      platform: 'node',
      target: 'node22',
      logLevel: 'error',
    })
    writeFileSync(empty, '')

    const bytes = readFileSync(bundle)
    const gzipped = gzipSync(bytes, { level: 9 }).length
    console.log('## The bundle that imports only hookline\n')
    printTable(
      ['minified, bytes', 'gzipped, bytes', 'target', ''],
      [[String(bytes.length), String(gzipped), `≤ ${TARGET_BYTES} gzipped`, verdict(gzipped <= TARGET_BYTES)]],
    )
    const [ours, none] = importTimes(bundle, empty)
    printTable(
      ['import of', 'ms, fresh process', 'whole process, ms'],
      [
        ['the bundle', ours.inside.toFixed(2), ours.whole.toFixed(1)],
        ['an empty module', none.inside.toFixed(2), none.whole.toFixed(1)],
      ],
    )
  } finally {
    rmSync(directory, { recursive: true })
  }
}

interface ImportTime {
  /** From before the import to after it. */
  readonly inside: number
  /** From before the process started to after it ended. */
  readonly whole: number
}

/** Imports each in fresh processes, in turns; medians. */
function importTimes(one: string, other: string): [ImportTime, ImportTime] {
  const timings: [ImportTime[], ImportTime[]] = [[], []]
  for (let i = 0; i < PROCESSES; i++) {
    timings[0].push(importTime(one))
    timings[1].push(importTime(other))
  }
  return [medians(timings[0]), medians(timings[1])]
}

function importTime(file: string): ImportTime {
  const script = 'const t = performance.now(); await import(process.argv[1]); console.log(performance.now() - t)'
  const start = performance.now()
  const args = ['--input-type=module', '-e', script, pathToFileURL(file).href]
  const printed = execFileSync(process.execPath, args, { encoding: 'utf8' })
  return { inside: Number(printed), whole: performance.now() - start }
}

function medians(timings: readonly ImportTime[]): ImportTime {
  return { inside: median(timings.map(({ inside }) => inside)), whole: median(timings.map(({ whole }) => whole)) }
}

/** The machine that the figures are from. */

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from './table.ts'

/** Prints the processor, its cores, the versions, the date, and what bounds the rates of a queue in a file. */
export function printMachine(): void {
  const cores = cpus()
  const date = new Date().toISOString().slice(0, 10)
  console.log(
    `${cores[0]?.model.trim()}, ${cores.length} cores, ${process.platform} ${process.arch}, Node ${process.versions.node}, ${date}`,
  )
  console.log(`The disk of ${tmpdir()} keeps a page in ${measureFlush().toFixed(1)} ms.\n`)
}

/** How long the disk takes to keep a page, in milliseconds. */
function measureFlush(): number {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-bench-'))
  const file = openSync(join(folder, 'flush'), 'w')
  const times = Array.from({ length: 50 }, () => {
    const start = performance.now()
    writeSync(file, Buffer.alloc(4096))
    fdatasyncSync(file)
    return performance.now() - start
  })
  closeSync(file)
  rmSync(folder, { recursive: true })
  return median(times)
}

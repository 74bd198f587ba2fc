/** The machine that the figures are from. */

import { cpus } from 'node:os'

/** Prints the processor, its cores, the versions and the date. */
export function printMachine(): void {
  const cores = cpus()
  const date = new Date().toISOString().slice(0, 10)
  console.log(
    `${cores[0]?.model.trim()}, ${cores.length} cores, ${process.platform} ${process.arch}, Node ${process.versions.node}, ${date}\n`,
  )
}

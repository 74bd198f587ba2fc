/** A list of ids in a file that several processes write: each line is written at once or not at all. */

import { existsSync, openSync, readFileSync, writeSync } from 'node:fs'

/** A line: an id, the process that wrote it, and when, in milliseconds since the epoch. */
export interface Entry {
  readonly id: string
  readonly by: string
  readonly at: number
}

export function openJournal(path: string, by: string): (id: string) => void {
  const file = openSync(path, 'a')
  return (id) => void writeSync(file, `${id} ${by} ${Date.now()}\n`)
}

export function readJournal(path: string): Entry[] {
  if (!existsSync(path)) return []
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const [id = '', by = '', at] = line.split(' ')
    return { id, by, at: Number(at) }
  })
}

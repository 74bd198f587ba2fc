/** Opens output files whose paths the user chose. */

import { closeSync, lstatSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { UsageError } from './terminal.ts'

/**
 * Opens a new file, which replaces any regular file of that name. Does not follow links, because a link could lead to any file of the user.
 *
 * @returns A function that writes the text and closes the file.
 * @throws UsageError for a path that cannot be written, or that names anything other than a regular file.
 */
export function openOutput(option: string, path: string, mode: number): (text: string) => void {
  requirePlain(option, path)
  try {
    rmSync(path, { force: true })
    const file = openSync(path, 'wx', mode)
    return (text) => {
      writeFileSync(file, text)
      closeSync(file)
    }
  } catch (error) {
    throw cannotWrite(option, path, (error as Error).message)
  }
}

/** @throws UsageError for a link, a folder or a device. The path need not exist. */
export function requirePlain(option: string, path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found !== undefined && !found.isFile()) throw cannotWrite(option, path, 'it is not a regular file')
}

function cannotWrite(option: string, path: string, reason: string): UsageError {
  return new UsageError(`${option}: ${path} cannot be written: ${reason}. Pass another path.`)
}

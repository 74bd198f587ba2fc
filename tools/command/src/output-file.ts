/** Files that a user names for what a command writes. */

import { closeSync, lstatSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { UsageError } from './terminal.ts'

/**
 * Opens a new file, in place of a plain one of that name. Follows no link, which could lead to any file of this user.
 *
 * @returns Writes the text, and closes the file.
 * @throws UsageError for a path that cannot be written, or of anything but a plain file.
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

/** @throws UsageError for a link, a folder or a device. A path of nothing is fine. */
export function requirePlain(option: string, path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found !== undefined && !found.isFile()) throw cannotWrite(option, path, 'it is a link, or no plain file')
}

function cannotWrite(option: string, path: string, reason: string): UsageError {
  return new UsageError(`${option}: ${path} cannot be written: ${reason}.`)
}

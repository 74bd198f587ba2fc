/** What some tests need beside Node and npm. A test names it with {@link needs}, and is left out where it is missing. */

import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { inject } from 'vitest'
import type { Need } from './last-lines.ts'
import { findPostgres } from './postgres-server.ts'

/**
 * The options of a test, or of a suite, that needs other programs or servers, or an operating system.
 *
 * `POSIX`: a shell, signals, modes and symbolic links of files, and files that can be removed while they are open. Windows has none of
 * them, so programs that are not Node count as missing there: their tests use a shell, or compare line ends.
 *
 * @example it('agrees with openssl', needs('openssl'), () => {})
 */
export function needs(...names: readonly Need[]): { tags: Need[]; skip: boolean } {
  const missing = names.filter((name) => !isThere(name))
  return { tags: missing, skip: missing.length > 0 }
}

function isThere(name: Need): boolean {
  if (name === 'Linux') return process.platform === 'linux'
  if (name === 'POSIX') return process.platform !== 'win32'
  if (name === 'Redis') return inject('redisUrl') !== undefined
  if (name === 'PostgreSQL') return inject('databaseUrl') !== undefined
  if (name === 'root') return process.getuid?.() === 0
  if (name === 'initdb') return findPostgres() !== undefined
  if (process.platform === 'win32') return false
  return isOnPath(name)
}

function isOnPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, program)))
}

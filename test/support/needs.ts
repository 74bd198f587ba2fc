/** What some tests need beside Node, npm and a shell. A test names it with {@link needs}, and is left out where it is missing. */

import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { inject } from 'vitest'
import type { Need } from './left-out.ts'
import { findPostgres } from './postgres-server.ts'

/**
 * The options of a test, or of a suite, that needs other programs or servers.
 *
 * @example it('agrees with openssl', needs('openssl'), () => {})
 */
export function needs(...names: readonly Need[]): { tags: Need[]; skip: boolean } {
  const missing = names.filter((name) => !isThere(name))
  return { tags: missing, skip: missing.length > 0 }
}

function isThere(name: Need): boolean {
  if (name === 'Redis') return inject('redisUrl') !== undefined
  if (name === 'PostgreSQL') return inject('databaseUrl') !== undefined
  if (name === 'root') return process.getuid?.() === 0
  if (name === 'initdb') return findPostgres() !== undefined
  return (process.env.PATH ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)))
}

/** The engines under test: a new place on each, a check of its store, and its removal. */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Redis } from 'ioredis'
import pg from 'pg'
import { inject, it } from 'vitest'
import { removeQueue } from '../support/redis.ts'
import type { EngineName, Place } from './place.ts'
import { createRandom, readNumber } from './random.ts'

export const rounds = readNumber('CRASH_ROUNDS', 3)
export const seed = readNumber('CRASH_SEED', Math.floor(Math.random() * 2 ** 31))

export interface TestedEngine {
  readonly engine: EngineName
  /** The URL of its server; empty when it has none; undefined when its tests are skipped. */
  readonly at: string | undefined
  /** The shortest lease it allows, so that the claims of a killed process lapse soon. SQLite needs none. */
  readonly leaseMs: number
}

export interface Site {
  readonly place: Place
  readonly folder: string
  readonly journal: string
  /** `ok`, or what is wrong with a store after a crash. Stores on a server are not inspected. */
  inspect(): string
  remove(): Promise<void>
}

export const engines: readonly TestedEngine[] = [
  { engine: 'sqlite', at: '', leaseMs: 1_000 },
  { engine: 'bullmq', at: inject('redisUrl'), leaseMs: 1_000 },
  { engine: 'pg-boss', at: inject('databaseUrl'), leaseMs: 10_000 },
]

export interface TestedSite {
  readonly engine: EngineName
  readonly site: Site
  readonly random: () => number
}

/** Declares a test for each engine that is there, on a place of its own. */
export function testOnEngines(
  title: string,
  run: (tested: TestedSite) => Promise<void>,
  { tested = engines, leaseMs }: { readonly tested?: readonly TestedEngine[]; readonly leaseMs?: number } = {},
): void {
  for (const { engine, at, leaseMs: shortestMs } of tested) {
    it.skipIf(at === undefined)(
      `${title}, on ${engine}, seed ${seed}`,
      { timeout: 60_000 + rounds * 10_000 },
      async (context) => {
        const site = createSite(engine, at ?? '', leaseMs ?? shortestMs)
        context.onTestFinished(site.remove)
        await run({ engine, site, random: createRandom(seed) })
      },
    )
  }
}

/** Creates a new place. Without a lease, its queues have the defaults of the engine. */
export function createSite(engine: EngineName, at: string, leaseMs?: number): Site {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-crash-'))
  const name = `crash_${folder.slice(-6).toLowerCase()}`
  const file = join(folder, 'store.sqlite')
  return {
    place: { engine, at: engine === 'sqlite' ? file : at, name, ...(leaseMs !== undefined && { leaseMs }) },
    folder,
    journal: join(folder, 'journal'),
    inspect: () => (engine === 'sqlite' && existsSync(file) ? inspectCopy(file, folder) : 'ok'),
    async remove() {
      if (engine === 'bullmq') {
        const redis = new Redis(at)
        await removeQueue(redis, name)
        redis.disconnect()
      }
      if (engine === 'pg-boss') {
        const client = new pg.Client({ connectionString: at })
        await client.connect()
        await client.query(`DROP SCHEMA IF EXISTS ${name} CASCADE`)
        await client.end()
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Inspects a copy: opening the file itself would repair it for the next process. Copied by another one: this one may have it open. */
function inspectCopy(file: string, folder: string): string {
  const copy = join(folder, 'copy.sqlite')
  for (const part of ['', '-wal']) {
    rmSync(copy + part, { force: true })
    if (existsSync(file + part)) execFileSync('cp', [file + part, copy + part])
  }
  const database = new DatabaseSync(copy)
  try {
    return String(database.prepare('PRAGMA integrity_check').get()?.integrity_check)
  } finally {
    database.close()
  }
}

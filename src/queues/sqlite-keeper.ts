/** Keeps the file of a queue: carries out commands, many of them in one transaction. */

import type { DatabaseSync } from 'node:sqlite'
import type { Answer, Command } from './sqlite-commands.ts'
import { openFile } from './sqlite-file.ts'
import { createJobs, type Jobs, type JobsOptions } from './sqlite-jobs.ts'

/** What is fixed for a keeper: plain data, for a thread to be given. */
export interface KeeperOptions extends JobsOptions {
  readonly path: string
  readonly busyTimeoutMs: number
}

/** Who keeps it. */
export interface Keeper {
  /** Carries commands out, and answers each when it is as safe as it gets. Never throws. */
  carryOut(commands: readonly Command[]): Answer[]
  close(): void
}

/**
 * Opens the file.
 *
 * @throws Error of SQLite, or one that says why the file will not do.
 */
export function openKeeper(options: KeeperOptions): Keeper {
  const database = openFile(options.path, options.busyTimeoutMs)
  const jobs = createJobs(database, options)
  let synchronous = ''

  /** All of them, or an error and none. */
  function transact(commands: readonly Command[]): Answer[] {
    setSynchronous(database, commands.some(mustSurvivePowerCut) ? 'FULL' : 'NORMAL')
    const answers: Answer[] = []
    database.exec('BEGIN IMMEDIATE')
    try {
      jobs.begin()
      // Claims last: they bring what was just pushed.
      for (const [index, command] of commands.entries())
        if (command.kind !== 'claim') answers[index] = step(jobs, command)
      for (const [index, command] of commands.entries())
        if (command.kind === 'claim') answers[index] = step(jobs, command)
      jobs.end()
      database.exec('COMMIT')
      return answers
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }

  function setSynchronous(to: DatabaseSync, mode: 'FULL' | 'NORMAL'): void {
    if (mode === synchronous) return
    to.exec(`PRAGMA synchronous = ${mode}`)
    synchronous = mode
  }

  return {
    carryOut(commands) {
      try {
        return transact(commands)
      } catch (error) {
        // One that fails takes nobody along: each is tried by itself.
        if (commands.length > 1 && !isBusy(error)) return commands.flatMap((command) => this.carryOut([command]))
        return commands.map(() => ({ failed: (error as Error).message }))
      }
    },
    close() {
      database.close()
    },
  }
}

/**
 * Which changes wait for the disk. A claim does not: lost in a power cut, the job is still in the queue. Neither does what
 * only looks.
 */
function mustSurvivePowerCut({ kind }: Command): boolean {
  return !['claim', 'next', 'renew', 'counts', 'dead'].includes(kind)
}

function step(jobs: Jobs, command: Command): Answer {
  switch (command.kind) {
    case 'push':
      return jobs.push(command.jobs, command.now) ? { value: undefined } : FULL
    case 'claim':
      return { value: jobs.claim(command.limit, command.owner, command.now) }
    case 'next':
      return { value: jobs.nextAt(command.now) }
    case 'done':
      return { value: jobs.done(command.hold, command.now) }
    case 'retry':
      return { value: jobs.retry(command.hold, command.at, command.state, command.now) }
    case 'bury':
      return { value: jobs.bury(command.hold, command.reason, command.state, command.now) }
    case 'release':
      return { value: jobs.release(command.holds, command.now) }
    case 'renew':
      return { value: jobs.renew(command.owner, command.now) }
    case 'counts':
      return { value: jobs.counts(command.now) }
    case 'dead':
      return { value: jobs.dead(command.after, command.limit) }
    case 'redrive': {
      const count = jobs.redrive(command.ids, command.now)
      return count === undefined ? FULL : { value: count }
    }
    case 'drop':
      return { value: jobs.drop(command.ids) }
  }
}

const FULL: Answer = { full: true }

/** SQLITE_BUSY and its kin, whose lowest byte is theirs: trying each by itself would only wait as often. */
function isBusy(error: unknown): boolean {
  return (Number((error as { readonly errcode?: number }).errcode) & 0xff) === 5
}

/** Starts a program on one core, where the machine lets us: server and load must not share one. */

import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Whether programs are pinned. */
export const isPinned = availableParallelism() > 1 && isInstalled('taskset')

/** The cores in use. */
export const SERVER_CORE = 0
export const LOAD_CORE = 1

/** Spawns a program on a core; undefined: on any. */
export function spawnOn(
  core: number | undefined,
  program: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  return isPinned && core !== undefined
    ? spawn('taskset', ['-c', String(core), program, ...args], options)
    : spawn(program, [...args], options)
}

/**
 * Keeps a core from going to sleep, at a priority that gives way to everything else. The load is faster than the
 * servers and would sleep between two answers; waking a sleeping core is paid for by the process that writes, which
 * adds as much to a request as the work that is compared. Returns what ends it.
 */
export function keepAwake(core: number): () => void {
  if (!isPinned || !isInstalled('chrt')) return () => {}
  const child = spawnOn(core, 'chrt', ['--idle', '0', process.execPath, '-e', 'for (;;) {}'], { stdio: 'ignore' })
  const end = (): void => void child.kill()
  process.once('exit', end)
  return () => {
    process.off('exit', end)
    end()
  }
}

/** Whether a program is there to run. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** Starts a program on one core, where the machine lets us: server and load must not share one. */

import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

/** Whether programs are pinned. */
const isPinned = availableParallelism() > 1 && isInstalled('taskset')

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
 * adds as much to a request as the work that is compared. It has a session of its own: where the kernel schedules by sessions,
 * a priority counts within one only. Returns what ends it.
 */
export function keepAwake(core: number): () => void {
  if (!isPinned || !isInstalled('chrt')) return () => {}
  const spin = `echo 19 >/proc/self/autogroup; exec chrt --idle 0 '${process.execPath}' -e '${SPIN}'`
  const child = spawnOn(core, 'sh', ['-c', spin], { stdio: 'ignore', detached: true })
  const end = (): void => void child.kill()
  process.once('exit', end)
  return () => {
    process.off('exit', end)
    end()
  }
}

/** Until whoever started it is gone, however that ended. */
const SPIN = 'const { ppid } = process; while (process.ppid === ppid) for (let i = 0; i < 1e8; i++);'

/** Whether a program is there to run. */
function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined
}

/** `hookline queue … redrive` and `drop`: what is asked for, by reason and count, before and after. */

import type { Queue } from '../../queues/queue.ts'
import { confirm } from '../arguments.ts'
import { escaped, interruption, note, print, printJson, UsageError } from '../terminal.ts'
import { listReasons, readLetters } from './letters.ts'

/** What to do, with which dead letters. */
export interface Change {
  readonly action: 'redrive' | 'drop'
  /** The name of the queue. */
  readonly name: string
  /** None: all, or those with the reason. */
  readonly ids: readonly string[]
  readonly reason?: string
  readonly dryRun?: boolean
  readonly yes?: boolean
  readonly json?: boolean
}

const WORDS = {
  redrive: { ask: 'Redrive', would: 'Would redrive', done: 'Redriven' },
  drop: { ask: 'Drop', would: 'Would drop', done: 'Dropped' },
} as const

/** So many at once: between them a Ctrl-C is heard. */
const AT_ONCE = 500

/** Does it, after a question when they are more than one. Sets exit code 1 when an id is that of no dead letter. */
export async function change(queue: Queue, options: Change): Promise<void> {
  const { action, name, dryRun = false, yes = false, json = false } = options
  const words = WORDS[action]
  const { ids, reasons } = await select(queue, options)
  const found = `${ids.length} dead letter${ids.length === 1 ? '' : 's'} of queue ${escaped(name)}`
  const what = reasons.length === 0 ? found : `${found}: ${listReasons(reasons)}`
  const report = { queue: name, action, dryRun, found: ids.length, reasons }
  if (dryRun || ids.length === 0) {
    if (json) return printJson({ ...report, done: 0 })
    return print(ids.length === 0 ? 'No dead letters to change.' : `${words.would} ${what}.`)
  }
  if (ids.length > 1 && !yes && !(await confirm(`${words.ask} ${what}?`))) {
    throw new UsageError('Nothing was changed.')
  }
  const signal = interruption()
  let done = 0
  for (let start = 0; start < ids.length && !signal.aborted; start += AT_ONCE) {
    done += await queue[action](ids.slice(start, start + AT_ONCE))
  }
  if (done < ids.length) note(`${ids.length - done} of ${found} were left: interrupted, or changed meanwhile.`)
  if (json) printJson({ ...report, done })
  else print(`${words.done}: ${done === ids.length ? what : `${done} of ${what}`}.`)
}

interface Selected {
  readonly ids: readonly string[]
  /** The largest first. */
  readonly reasons: readonly { readonly reason: string; readonly count: number }[]
}

/** Reads which dead letters are meant. */
async function select(queue: Queue, { ids: given, reason: wanted }: Change): Promise<Selected> {
  const missing = new Set(given.map((id) => id.toLowerCase()))
  const isGiven = missing.size > 0
  const ids: string[] = []
  const counts = new Map<string, number>()
  for await (const { id, reason } of readLetters(queue)) {
    if (isGiven && !missing.delete(id)) continue
    if (wanted !== undefined && reason !== wanted) continue
    ids.push(id)
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
    if (isGiven && missing.size === 0) break
  }
  for (const id of missing) note(`No dead letter has the id ${escaped(id)}.`)
  if (missing.size > 0) process.exitCode = 1
  const reasons = [...counts].map(([reason, count]) => ({ reason, count })).sort((a, b) => b.count - a.count)
  return { ids, reasons }
}

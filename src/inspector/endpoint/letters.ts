/** Dead letters: lists and groups them, redrives and drops them. */

import { setImmediate } from 'node:timers/promises'
import { HooklineError } from '../../message/error.ts'
import type { Clock } from '../../time/clock.ts'
import type { Journal } from '../journal.ts'
import type { Change, Changed, DeadLetters, Letter } from '../wire.ts'
import { Refusal } from './answers.ts'
import type { PartLetter, PartQueue, WatchedPart } from './parts.ts'

/** Which dead letters to list. */
interface LettersQuery {
  readonly reason?: string | undefined
  readonly after?: string | undefined
}

/** The dead letters of all parts. */
export interface Letters {
  list(part: QueuedPart, query: LettersQuery): Promise<DeadLetters>
  /** Redrives or drops. With `dryRun` it counts only. */
  change(what: 'redrive' | 'drop', part: QueuedPart, change: Selection, signal: AbortSignal): Promise<Changed>
}

/** Which dead letters to change. */
export type Selection = Omit<Change, 'part'>

/** A part with a queue. */
export type QueuedPart = WatchedPart & { readonly queue: PartQueue }

/** The bodies of so many are in memory at once. */
const PAGE = 100
/** How many are read for groups and for a page. */
const MOST_READ = 10_000
/** How many are listed at once. */
const MOST_LISTED = 50
/** How many are changed at once. */
const SLICE = 500
/** How long groups are good for: reading them again for each page would cost the engine much. */
const GROUPS_MS = 5_000

type Groups = Pick<DeadLetters, 'groups' | 'isWhole'>

/**
 * @param clock The clock of the parts.
 * @param machine The clock of the machine.
 */
export function createLetters(journal: Journal, clock: Clock, machine: Clock): Letters {
  const kept = new Map<string, { readonly at: number; readonly groups: Promise<Groups> }>()
  const changing = new Set<string>()

  function readGroups({ name, queue }: QueuedPart): Promise<Groups> {
    const now = machine.monotonic()
    const known = kept.get(name)
    if (known !== undefined && now - known.at < GROUPS_MS) return known.groups
    const groups = group(queue)
    kept.set(name, { at: now, groups })
    groups.catch(() => kept.delete(name))
    return groups
  }

  function toLetter(part: string, { id, reason, failedAt, details }: PartLetter): Letter {
    const row = journal.rowOfJob(part, id)
    return { id, reason, failedAt: failedAt.getTime(), ...details(), ...(row !== undefined && { row }) }
  }

  return {
    async list(part, { reason, after }) {
      const { groups, isWhole } = await readGroups(part)
      const letters: Letter[] = []
      let [last, count]: [string | undefined, number] = [undefined, 0]
      for await (const letter of readLetters(part.queue, after)) {
        if (letters.length === MOST_LISTED || count === MOST_READ) {
          return { part: part.name, groups, isWhole, letters, ...(last !== undefined && { next: last }) }
        }
        count += 1
        last = letter.id
        if (reason !== undefined && letter.reason !== reason) continue
        letters.push(toLetter(part.name, letter))
        await setImmediate() // A body was parsed: other requests go first.
      }
      return { part: part.name, groups, isWhole, letters }
    },

    async change(what, { name, queue }, change, signal) {
      if (changing.has(name)) {
        throw new Refusal(409, 'A queue takes one change at a time. Got another one. Wait until the first has ended.')
      }
      changing.add(name)
      try {
        const selected = await select(queue, change, signal)
        const reasons = [...countReasons(selected.values())].map(([reason, count]) => ({ reason, count }))
        if (change.dryRun) return { count: selected.size, reasons, dryRun: true }
        const done = what === 'redrive' ? 'redriven' : 'dropped'
        let count = 0
        for (let ids = [...selected.keys()]; ids.length > 0 && !signal.aborted; ids = ids.slice(SLICE)) {
          const slice = ids.slice(0, SLICE)
          // A worker may end a redriven job before the queue has answered.
          const [at, { version }] = [clock.now(), journal]
          count += await queue[what](slice).catch((error: unknown) => {
            if (!(error instanceof HooklineError)) throw error
            throw new Refusal(error.status, `${error.message} ${count} of ${selected.size} were ${done} before.`)
          })
          journal.changed(name, slice, done, at, version)
        }
        return { count, reasons, dryRun: false }
      } finally {
        changing.delete(name)
        kept.delete(name)
      }
    },
  }
}

/**
 * Reads what the page asks to change.
 *
 * @throws Refusal
 */
export function readChange({ ids, reason, dryRun }: { readonly [field in keyof Change]?: unknown }): Selection {
  if (typeof dryRun !== 'boolean') {
    throw new Refusal(400, '`dryRun` must be true or false. Got something else. Send true to see what would happen.')
  }
  if (reason !== undefined && (typeof reason !== 'string' || ids !== undefined)) {
    throw new Refusal(
      400,
      '`reason` must be text, without `ids`. Got something else. Send one of them, or neither for all.',
    )
  }
  if (ids === undefined) return { dryRun, ...(reason !== undefined && { reason }) }
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MOST_READ
  if (isList && ids.every((id) => typeof id === 'string')) return { ids, dryRun }
  throw new Refusal(
    400,
    `\`ids\` must be a list of 1 to ${MOST_READ} ids. Got something else. Send the ids of dead letters.`,
  )
}

/** Reads dead letters, the oldest first, page by page. */
async function* readLetters(queue: PartQueue, from?: string): AsyncGenerator<PartLetter> {
  for (let after = from; ; ) {
    const page = await queue.deadLetters({ limit: PAGE, ...(after !== undefined && { after }) })
    yield* page
    after = page.at(-1)?.id
    if (page.length < PAGE) return
    await setImmediate() // A queue in memory answers at once, and other requests would wait for all of it.
  }
}

async function group(queue: PartQueue): Promise<Groups> {
  const groups = new Map<string, { readonly reason: string; count: number; latestAt: number }>()
  let count = 0
  for await (const { reason, failedAt } of readLetters(queue)) {
    if (count === MOST_READ) return { groups: largestFirst(groups.values()), isWhole: false }
    count += 1
    const group = groups.get(reason) ?? { reason, count: 0, latestAt: 0 }
    groups.set(reason, group)
    group.count += 1
    group.latestAt = Math.max(group.latestAt, failedAt.getTime())
  }
  return { groups: largestFirst(groups.values()), isWhole: true }
}

function largestFirst<Group extends { readonly count: number }>(groups: Iterable<Group>): Group[] {
  return [...groups].sort((one, other) => other.count - one.count)
}

/** Finds what is to change before anything does: those that become dead letters meanwhile again are left alone. */
async function select(
  queue: PartQueue,
  { ids, reason }: Selection,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const wanted = ids && new Set(ids)
  const selected = new Map<string, string>()
  for await (const letter of readLetters(queue)) {
    if (wanted?.size === selected.size || signal.aborted) break
    const isMeant = wanted === undefined ? reason === undefined || letter.reason === reason : wanted.has(letter.id)
    if (isMeant) selected.set(letter.id, letter.reason)
  }
  return selected
}

function countReasons(reasons: Iterable<string>): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return counts
}

/** Dead letters: lists and groups them, redrives and drops them. */

import { setImmediate } from 'node:timers/promises'
import { HooklineError } from '../../message/error.ts'
import { walkLetters } from '../../queues/letters.ts'
import type { Clock } from '../../time/clock.ts'
import type { Journal } from '../journal.ts'
import type { Change, Changed, DeadLetters, Letter, LetterGroup } from '../wire.ts'
import { Refusal } from './answers.ts'
import type { PartLetter, PartQueue, WatchedPart } from './queues.ts'

export type QueuedPart = WatchedPart & { readonly queue: PartQueue }

type Selection = Omit<Change, 'part'>

export interface Letters {
  list(part: QueuedPart, group: string | undefined, after: string | undefined): Promise<DeadLetters>
  /**
   * Redrives or drops. With `dryRun` it counts only.
   *
   * @throws Refusal (as a rejection) for a wrong change, and while another changes the queue.
   */
  change(what: 'redrive' | 'drop', part: QueuedPart, body: Unread, signal: AbortSignal): Promise<Changed>
}

type Unread = { readonly [field in keyof Change]?: unknown }

/** The bodies of so many are in memory at once. */
const PAGE = 100
const MAX_READ = 10_000
/** How many are listed at once. */
const MAX_LISTED = 50
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
    const row = journal.rowOf(part, id)
    return { id, reason, failedAt: failedAt.getTime(), ...details(), ...(row !== undefined && { row }) }
  }

  async function change(
    what: 'redrive' | 'drop',
    { name, queue }: QueuedPart,
    change: Selection,
    signal: AbortSignal,
  ): Promise<Changed> {
    const selected = await select(queue, change, signal)
    const groups = Map.groupBy(selected, ({ reason }) => reason)
    const reasons = [...groups].map(([reason, { length: count }]) => ({ reason, count }))
    if (change.dryRun) return { count: selected.length, reasons, dryRun: true }
    const done = what === 'redrive' ? 'redriven' : 'dropped'
    let count = 0
    for (let from = 0; from < selected.length && !signal.aborted; from += SLICE) {
      const ids = selected.slice(from, from + SLICE).map(({ id }) => id)
      // A worker may end a redriven job before the queue has answered.
      const [at, { version }] = [clock.now(), journal]
      count += await queue[what](ids).catch((error: unknown) => {
        if (!(error instanceof HooklineError)) throw error
        throw new Refusal(error.status, `${error.message} ${count} of ${selected.length} were ${done} before.`)
      })
      journal.changed(name, ids, done, at, version)
    }
    return { count, reasons, dryRun: false }
  }

  return {
    async list(part, group, after) {
      const page = { part: part.name, ...(await readGroups(part)) }
      const letters: Letter[] = []
      let [last, count] = ['', 0]
      for await (const letter of readLetters(part.queue, { newestFirst: true, after })) {
        if (letters.length === MAX_LISTED || count === MAX_READ) return { ...page, letters, next: last }
        count += 1
        last = letter.id
        if (group !== undefined && groupOf(letter) !== group) continue
        letters.push(toLetter(part.name, letter))
        await setImmediate() // A body was parsed: other requests go first.
      }
      return { ...page, letters }
    },

    async change(what, part, body, signal) {
      const { name } = part
      const wanted = readChange(body)
      if (changing.has(name)) {
        throw new Refusal(409, 'A queue accepts one change at a time. Got another one. Wait until the first has ended.')
      }
      changing.add(name)
      try {
        return await change(what, part, wanted, signal)
      } finally {
        changing.delete(name)
        kept.delete(name)
      }
    },
  }
}

function readChange({ ids, group, dryRun }: Unread): Selection {
  if (typeof dryRun !== 'boolean') {
    throw new Refusal(400, '`dryRun` must be true or false. Got something else. Send true to see what would happen.')
  }
  if (group !== undefined && (typeof group !== 'string' || ids !== undefined)) {
    throw new Refusal(
      400,
      '`group` must be text, without `ids`. Got something else. Send one of them, or neither for all.',
    )
  }
  if (ids === undefined) return { dryRun, ...(group !== undefined && { group }) }
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MAX_READ
  if (isList && ids.every((id) => typeof id === 'string')) return { ids, dryRun }
  throw new Refusal(
    400,
    `\`ids\` must be a list of 1 to ${MAX_READ} ids. Got something else. Send the ids of dead letters.`,
  )
}

/** Reads dead letters page by page. */
function readLetters(queue: PartQueue, walk: { readonly newestFirst: boolean; readonly after?: string | undefined }) {
  return walkLetters((page) => queue.deadLetters(page), walk, PAGE)
}

async function group(queue: PartQueue): Promise<Groups> {
  const groups = new Map<string, LetterGroup>()
  let read = 0
  for await (const letter of readLetters(queue, { newestFirst: true })) {
    read += 1
    if (read > MAX_READ) break
    const name = groupOf(letter)
    const { reason, error, failedAt } = letter
    const latest = { name, reason, error: error.slice(0, MAX_ERROR), count: 0, latestAt: failedAt.getTime() }
    const known = groups.get(name) ?? latest
    groups.set(name, { ...known, count: known.count + 1 })
  }
  const sorted = [...groups.values()].sort((one, other) => other.latestAt - one.latestAt)
  return { groups: sorted, isWhole: read <= MAX_READ }
}

const MAX_ERROR = 200

/** Letters with one cause have one name: the ids and numbers in their errors differ. */
export function groupOf({ reason, error }: Pick<PartLetter, 'reason' | 'error'>): string {
  const same = error.slice(0, MAX_ERROR).replace(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|\d+/gi, '#')
  return `${reason}: ${same}`
}

/** Finds what is to change before anything does: those that become dead letters meanwhile again are left alone. */
async function select(
  queue: PartQueue,
  { ids, group }: Selection,
  signal: AbortSignal,
): Promise<readonly Pick<PartLetter, 'id' | 'reason'>[]> {
  const wanted = ids && new Set(ids)
  const selected: Pick<PartLetter, 'id' | 'reason'>[] = []
  for await (const letter of readLetters(queue, { newestFirst: false })) {
    if (wanted?.size === selected.length || signal.aborted) break
    const isMeant = wanted === undefined ? group === undefined || groupOf(letter) === group : wanted.has(letter.id)
    if (isMeant) selected.push({ id: letter.id, reason: letter.reason })
  }
  return selected
}

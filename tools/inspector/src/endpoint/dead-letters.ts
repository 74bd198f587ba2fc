/** Lists, groups, redrives and drops dead letters. */

import { type Clock, HooklineError } from 'hookline'
import { groupOf, MAX_ERROR } from '../../../letter-groups.ts'
import type { Journal } from '../journal.ts'
import type { Change, Changed, DeadLetters, Letter, LetterGroup } from '../wire.ts'
import { Refusal, refuseUnless } from './answers.ts'
import type { PartLetter, PartQueue, WatchedPart } from './queues.ts'

export type QueuedPart = WatchedPart & { readonly queue: PartQueue }

type Unread = { readonly [field in keyof Change]?: unknown }

const MAX_READ = 10_000
/** The maximum number of dead letters in one list. */
const MAX_LISTED = 50
/** The maximum number of dead letters to change in one call. */
const SLICE = 500
/** The time for which groups are cached, in milliseconds. Reading the groups again for each page would put a heavy load on the engine. */
const GROUPS_MS = 5_000

type Groups = Pick<DeadLetters, 'groups' | 'isWhole'>

/**
 * @param clock The clock of the parts.
 * @param machine The system clock.
 */
export function createLetters(journal: Journal, clock: Clock, machine: Clock) {
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
    const row = journal.find(part, id)?.id
    return { id, reason, failedAt: failedAt.getTime(), ...details(), ...(row !== undefined && { row }) }
  }

  async function changeSelected(
    what: 'redrive' | 'drop',
    { name, queue }: QueuedPart,
    change: Change,
    signal: AbortSignal,
  ): Promise<Changed> {
    const selected = await select(queue, change, signal)
    const groups = Map.groupBy(selected, ({ reason }) => reason)
    const reasons = [...groups].map(([reason, { length: count }]) => ({ reason, count }))
    if (change.dryRun) return { count: selected.length, reasons }
    const done = what === 'redrive' ? 'redriven' : 'dropped'
    let count = 0
    for (let from = 0; from < selected.length && !signal.aborted; from += SLICE) {
      const ids = selected.slice(from, from + SLICE).map(({ id }) => id)
      // The time and version are read first, because a worker may complete a redriven job before the queue responds.
      const [at, { version }] = [clock.now(), journal]
      count += await queue[what](ids).catch((error: unknown) => {
        if (!(error instanceof HooklineError)) throw error
        throw new Refusal(error.status, `${error.message} ${count} of ${selected.length} had already been ${done}.`)
      })
      journal.changed(name, ids, done, at, version)
    }
    return { count, reasons }
  }

  return {
    async list(part: QueuedPart, group: string | undefined, after: string | undefined): Promise<DeadLetters> {
      const page = await readGroups(part)
      const letters: Letter[] = []
      let [last, count] = ['', 0]
      for await (const letter of part.queue.letters({ newestFirst: true, ...(after !== undefined && { after }) })) {
        if (letters.length === MAX_LISTED || count === MAX_READ) return { ...page, letters, next: last }
        count += 1
        last = letter.id
        if (group === undefined || groupOf(letter) === group) letters.push(toLetter(part.name, letter))
      }
      return { ...page, letters }
    },
    /**
     * Redrives or drops dead letters. With `dryRun`, only counts them.
     *
     * @throws Refusal (as a rejection) if the change is invalid, or if another change to the queue is running.
     */
    async change(what: 'redrive' | 'drop', part: QueuedPart, body: Unread, signal: AbortSignal): Promise<Changed> {
      const { name } = part
      requireChange(body)
      const text = 'Another change to this queue is already running. Wait until it ends.'
      refuseUnless(!changing.has(name), 409, text)
      changing.add(name)
      try {
        return await changeSelected(what, part, body, signal)
      } finally {
        changing.delete(name)
        kept.delete(name)
      }
    },
  }
}

function requireChange(body: Unread): asserts body is Change {
  const { ids, group, dryRun } = body
  const isList = Array.isArray(ids) && ids.length > 0 && ids.length <= MAX_READ
  const areIds = ids === undefined || (isList && ids.every((id) => typeof id === 'string'))
  const isGroup = group === undefined || (typeof group === 'string' && ids === undefined)
  const rule = `A change needs \`dryRun\` (true or false), and either \`ids\` (1 to ${MAX_READ} strings) or \`group\` (a string). To change all dead letters, omit \`ids\` and \`group\``
  refuseUnless(typeof dryRun === 'boolean' && areIds && isGroup, 400, `${rule}.`)
}

async function group(queue: PartQueue): Promise<Groups> {
  const groups = new Map<string, LetterGroup>()
  let readCount = 0
  for await (const letter of queue.letters({ newestFirst: true })) {
    readCount += 1
    if (readCount > MAX_READ) break
    const name = groupOf(letter)
    const { reason, error, failedAt } = letter
    const latest = { name, reason, error: error.slice(0, MAX_ERROR), count: 0, latestAt: failedAt.getTime() }
    const known = groups.get(name) ?? latest
    groups.set(name, { ...known, count: known.count + 1 })
  }
  const sorted = [...groups.values()].sort((one, other) => other.latestAt - one.latestAt)
  return { groups: sorted, isWhole: readCount <= MAX_READ }
}

/** Finds all selected dead letters before any of them is changed, so that a redriven job is not changed twice if it fails again. */
async function select(queue: PartQueue, { ids, group }: Change, signal: AbortSignal) {
  const wanted = ids && new Set(ids)
  const selected: Pick<PartLetter, 'id' | 'reason'>[] = []
  for await (const letter of queue.letters({ newestFirst: false })) {
    if (wanted?.size === selected.length || signal.aborted) break
    const isMeant = wanted === undefined ? group === undefined || groupOf(letter) === group : wanted.has(letter.id)
    if (isMeant) selected.push({ id: letter.id, reason: letter.reason })
  }
  return selected
}

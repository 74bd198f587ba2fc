// A queue over any store of keys and values with `get` and `put`, which one process uses alone: what it had claimed is due again when it
// starts anew.

import { createQueue } from 'hookline/queues'

export function kvQueue(kv) {
  return createQueue(createStore(kv), { name: 'kv', pollMs: 1_000 })
}

function createStore(kv) {
  const entries = new Map(kv.get('jobs') ?? [])
  for (const entry of entries.values()) if (entry.status === 'claimed') entry.status = 'waiting'
  let claims = 0

  const save = () => kv.put('jobs', [...entries])
  const those = (status) => [...entries.values()].filter((entry) => entry.status === status)
  const due = () => those('waiting').filter(({ at }) => at <= Date.now())
  const chosen = (ids) => those('failed').filter(({ id }) => ids === 'all' || ids.includes(id))

  /** Ends a claim that is still current. */
  function end({ id, claim }, change) {
    const entry = entries.get(id)
    if (entry?.status === 'claimed' && entry.claim === claim) Object.assign(entry, change(entry))
    save()
  }

  function removeAll(found) {
    for (const { id } of found) entries.delete(id)
    save()
    return found.length
  }

  return {
    isDurable: true,
    push(jobs) {
      for (const { id, body, notBefore } of jobs) {
        const at = notBefore?.getTime() ?? Date.now()
        if (!entries.has(id)) entries.set(id, { id, body, status: 'waiting', at, claimCount: 0, firstAt: Date.now() })
      }
      save()
    },
    claim(limit) {
      return due()
        .slice(0, limit)
        .map((entry) => {
          Object.assign(entry, { status: 'claimed', claim: ++claims, claimCount: entry.claimCount + 1 })
          save()
          return { ...entry, firstAt: new Date(entry.firstAt), dueAt: new Date(entry.at) }
        })
    },
    finish(claim, outcome) {
      end(claim, () => {
        const { retryState } = outcome
        if ('complete' in outcome) return { status: 'completed', body: new Uint8Array() }
        if ('deadLetter' in outcome) return { status: 'failed', at: Date.now(), reason: outcome.deadLetter, retryState }
        return { status: 'waiting', at: outcome.retryAt.getTime(), retryState }
      })
    },
    release(released, { wereHandled }) {
      for (const claim of released) {
        end(claim, ({ claimCount }) => ({ status: 'waiting', claimCount: claimCount - (wereHandled ? 0 : 1) }))
      }
    },
    nextDueAt() {
      const times = those('waiting').map(({ at }) => at)
      return times.length === 0 ? undefined : new Date(Math.min(...times))
    },
    counts() {
      const times = due().map(({ at }) => at)
      return {
        waiting: those('waiting').length,
        active: those('claimed').length,
        deadLetters: those('failed').length,
        oldestDueAt: times.length === 0 ? undefined : new Date(Math.min(...times)),
        asOf: new Date(),
      }
    },
    deadLetters({ after, limit }) {
      const failed = those('failed')
      const start = failed.findIndex(({ id }) => id === after) + 1
      return failed.slice(start, start + limit).map((entry) => ({ ...entry, failedAt: new Date(entry.at) }))
    },
    redrive(ids) {
      const found = chosen(ids)
      for (const entry of found) {
        Object.assign(entry, { status: 'waiting', at: Date.now(), claimCount: 0, retryState: undefined })
      }
      save()
      return found.length
    },
    drop: (ids) => removeAll(chosen(ids)),
    jobs: () => [...those('waiting'), ...those('claimed')],
    remove: (ids) => removeAll(those('waiting').filter(({ id }) => ids.includes(id))),
    close: () => [],
  }
}

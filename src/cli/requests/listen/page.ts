/** `hookline listen --ui`: the requests on a page. */

import { createExplainer } from '../../../inspector/explainer.ts'
import { createJournal, type JournalWriter, readKeep } from '../../../inspector/journal.ts'
import { addStep, setBody } from '../../../inspector/logged-message.ts'
import { createSeries, type SeriesRecorder } from '../../../inspector/series.ts'
import type { RowState, Step } from '../../../inspector/wire.ts'
import { createLog } from '../../../options/log.ts'
import { systemClock } from '../../../time/clock.ts'
import { openPage, type Page } from '../../page.ts'
import { headerOf, type KeptRequest, pairsOf } from '../kept.ts'
import { pathOf } from '../shown.ts'
import { openStore } from '../store.ts'

/** A page that shows requests. */
export interface RequestPage extends Page {
  add(request: KeptRequest): void
}

/** So many of the store are shown at first. */
const MOST_AT_FIRST = 500
const PART = 'listen'

/**
 * Serves the page, with the newest requests that are kept already.
 *
 * @param port True: any free one.
 * @throws UsageError (as a rejection) for a port that cannot be listened on.
 */
export async function showRequests(
  port: number | true,
  path: string,
  secret: string | undefined,
): Promise<RequestPage> {
  const keep = readKeep()
  const journal = createJournal(keep, systemClock, createLog(undefined, undefined, systemClock))
  const series = createSeries(systemClock)
  const explainer = createExplainer()
  const store = openStore(path)
  for (const { id } of store.list(MOST_AT_FIRST)) addRow(journal, store.find(id))
  store.close()
  const page = await openPage(port, {
    command: PART,
    journal,
    series,
    parts: [{ name: PART, kind: 'receiver' }],
    keep,
    async explain({ headers, bytes }) {
      const signature = headers['x-signature']?.toString()
      const explanation = secret === undefined ? undefined : await explainer.explain(bytes, signature, secret)
      return explanation?.message ?? 'It cannot be explained now. Run `hookline show` with the secret.'
    },
  })
  return {
    add(request) {
      addRow(journal, request)
      count(series, request)
    },
    async close() {
      await Promise.all([page.close(), explainer.close()])
      journal.close()
    },
  }
}

function addRow(journal: JournalWriter, request: KeptRequest): void {
  const { receivedAt, method, target, headers, body, size, message, verification, answer } = request
  const { type, name, user } = message
  const isRefused = verification === 'mismatched'
  const logged = journal.add(journal.part(PART), { kind: 'received', at: receivedAt, isRefused })
  setBody(logged, body)
  const { status, durationMs } = answer
  Object.assign(logged, { method, path: pathOf(target), headers: toHeaders(headers), bytes: size, status, durationMs })
  Object.assign(logged, {
    type: type?.startsWith('batch of ') ? 'batch' : type,
    name,
    user,
    state: stateOf(request),
    code: codeOf(request),
  })
  for (const step of stepsOf(request)) addStep(logged, step)
  journal.update(logged)
}

/** One that was not answered has failed for its sender. */
function stateOf({ answer: { status = 500 } }: KeptRequest): RowState {
  if (status >= 500) return 'failed'
  return status < 400 ? 'done' : 'refused'
}

function codeOf({ headers, verification, answer }: KeptRequest): string | undefined {
  if (verification === 'mismatched') {
    return headerOf(headers, 'x-signature') === undefined ? 'signature_missing' : 'signature_mismatch'
  }
  return answer.status === undefined ? 'unanswered' : undefined
}

function stepsOf(request: KeptRequest): readonly Step[] {
  const { receivedAt: at, size: bytes, isComplete, verification, reason, message, answer } = request
  const { status = 0, durationMs, note } = answer
  const [code, text] = [codeOf(request), reason ?? note ?? message.fault]
  const error =
    text === undefined
      ? {}
      : { error: { code: code ?? (note === undefined ? 'no_message' : answer.by), message: text } }
  return [
    { at, what: 'arrived', bytes, isCopy: false },
    ...(verification === 'verified' ? [{ at, what: 'checked', isVerified: true } as const] : []),
    ...(verification === 'unchecked' && isComplete ? [{ at, what: 'unchecked' } as const] : []),
    { at: at + durationMs, what: 'answered', status, durationMs, ...error },
  ]
}

function count(series: SeriesRecorder, request: KeptRequest): void {
  const { durationMs } = request.answer
  if (stateOf(request) === 'done') series.done(PART, durationMs)
  else series.failed(PART, durationMs)
}

/** Names in lower case, as node:http gives them. */
function toHeaders(headers: readonly string[]): Record<string, string[]> {
  const lists: Record<string, string[]> = Object.create(null)
  for (const [name, value] of pairsOf(headers)) {
    const key = name.toLowerCase()
    lists[key] = [...(lists[key] ?? []), value]
  }
  return lists
}

/** `hookline listen --ui`: the requests on a page. */

import { shownUrl } from '../../../http/shown.ts'
import { createEventCounts, type EventCounts } from '../../../inspector/event-counts.ts'
import { createExplainer } from '../../../inspector/explainer.ts'
import type { JournalWriter } from '../../../inspector/journal.ts'
import { addStep, setBody } from '../../../inspector/logged-message.ts'
import type { RowState, Step } from '../../../inspector/wire.ts'
import { elementsOf, isArray } from '../../../message/elements.ts'
import { systemClock } from '../../../time/clock.ts'
import { openPage } from '../../page.ts'
import { groupHeaders, headerOf, type KeptRequest, openStore, readFields } from '../../request-store.ts'

const MAX_AT_FIRST = 500
const PART = 'listen'

/**
 * Serves the page, with the newest requests that are kept already.
 *
 * @param port True: any free one.
 * @param address Where they arrive; undefined before it is known.
 * @throws UsageError (as a rejection) for a port that cannot be listened on.
 */
export async function showRequests(
  port: number | true,
  path: string,
  secret: string | undefined,
  address: () => string | undefined,
) {
  const explainer = createExplainer()
  const events = createEventCounts(PART, systemClock)
  const page = await openPage(port, {
    command: PART,
    address,
    parts: [{ name: PART, kind: 'receiver' }],
    events: [events],
    async explain({ headers, bytes }) {
      const signature = headers['x-signature']?.toString()
      const explanation = secret === undefined ? undefined : await explainer.explain(bytes, signature, secret)
      return explanation?.message ?? 'It cannot be explained now. Run `hookline show` with the secret.'
    },
  })
  const store = openStore(path)
  for (const { id } of store.list(MAX_AT_FIRST)) addRow(page.journal, store.find(id))
  store.close()
  return {
    add(request: KeptRequest): void {
      addRow(page.journal, request)
      const record = stateOf(request) === 'done' ? page.series.done : page.series.failed
      record(PART, request.answer.durationMs)
      countEvents(events, request)
    },
    async close(): Promise<void> {
      await Promise.all([page.close(), explainer.close()])
    },
  }
}

/** Counts each message of a request, unless a signature was checked and is wrong. */
function countEvents(events: EventCounts, { body, verification }: KeptRequest): void {
  if (verification === 'mismatched') return
  for (const bytes of isArray(body) ? elementsOf(body) : [body]) {
    const { type, name, fault } = readFields(bytes)
    if (type !== undefined && fault === undefined) events.arrived({ type, event: type === 'track' ? name : undefined })
  }
}

function addRow(journal: JournalWriter, request: KeptRequest): void {
  const { receivedAt, method, target, headers, body, size, message, verification, answer } = request
  const { type, name, user } = message
  const logged = journal.add(journal.part(PART), {
    kind: 'received',
    at: receivedAt,
    isRefused: verification === 'mismatched',
  })
  setBody(logged, body)
  const { status, durationMs } = answer
  Object.assign(logged, { method, path: shownUrl(target), bytes: size, status, durationMs, name, user })
  Object.assign(logged, {
    headers: Object.fromEntries(groupHeaders(headers)),
    type: type?.startsWith('batch of ') ? 'batch' : type,
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

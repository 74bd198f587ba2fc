/** createReceiver(): combines options, handlers, inbox and receive algorithm, and controls the lifecycle of a receiver. */

import { setImmediate as nextTurn } from 'node:timers/promises'
import { bodyTooLarge } from '../host/body.ts'
import type { EndpointHeaders } from '../host/endpoint.ts'
import { invalidOption, kindOf, requireInteger, requireOptions, requireText } from '../kit/checks.ts'
import { withTimeout } from '../kit/timeout.ts'
import { requireBytes } from '../protocol/error.ts'
import { checkHealth } from '../store/health.ts'
import { Deduplication } from './deduplication.ts'
import { type AudienceHandlers, Handlers } from './handlers.ts'
import { Inbox } from './inbox.ts'
import { rememberOptions } from './inspected.ts'
import { RequestReceiver } from './receive.ts'
import { type ReceiverOptions, readOptions } from './receiver-options.ts'
import type { ForgetOptions, HeadersLike, ReceiveOptions, Receiver, ReceiverCloseOptions } from './receiver-types.ts'
import type { CustomOption, EventSchemas, EventsOf, TraitSchemas } from './schema.ts'
import type { StoredMessage } from './stored-message.ts'
import { readWorkOptions } from './work.ts'

/**
 * Creates a receiver of webhook messages.
 *
 * @throws TypeError that names the invalid option, for a missing secret and any other mistake in the options.
 * @example
 * const receiver = createReceiver({ secret: process.env.HOOKLINE_SECRET })
 * receiver.on('track', (message) => console.log(message.event))
 */
export function createReceiver<
  // biome-ignore lint/complexity/noBannedTypes: the empty object means that there are no schemas
  const Events extends EventSchemas = {},
  // biome-ignore lint/complexity/noBannedTypes: the empty object means that there are no schemas
  const Traits extends TraitSchemas = {},
  const Custom extends CustomOption = undefined,
  const Strict extends boolean = boolean,
>(options: ReceiverOptions<Events, Traits, Custom, Strict>): Receiver<EventsOf<Events, Strict>, Traits, Custom> {
  const settings = readOptions(options as ReceiverOptions)
  const { limit, clock } = settings
  const handlers = new Handlers(Object.keys(options.events ?? {}), settings)
  const inbox = settings.inbox && new Inbox(settings.inbox, settings, handlers)
  const dedupe = settings.dedupe && new Deduplication(settings.dedupe, clock)
  const requests = new RequestReceiver(settings, handlers, inbox, dedupe)
  /** Whether `start` or `work` handles the messages of the inbox, and whether a call to `work` is in progress. */
  let handling: 'started' | 'working' | 'worked' | undefined
  let closed: Promise<readonly StoredMessage[]> | undefined

  const receiver: Receiver = {
    on: (...selection: unknown[]) => {
      handlers.register(selection)
      return receiver
    },
    onBatch: (...selection: unknown[]) => {
      handlers.addBatch(selection, requireInbox('onBatch').timeoutMs)
      return receiver
    },
    off: (...selection: unknown[]) => {
      handlers.remove(selection)
      return receiver
    },
    onAudience: (name, audience, options) => {
      handlers.addAudience(name, audience as AudienceHandlers, options)
      return receiver
    },
    observe: (observer) => settings.tap.observers.add(observer),
    handle: (request) => requests.handle(request),
    get background() {
      if (handling === 'started') return 'a started inbox'
      return settings.inbox?.queue.isDurable === false ? 'an inbox in memory' : undefined
    },
    receive: async (bytes, headers, options) => {
      requireBytes(bytes, 'receive: bytes')
      const { path, query } = readReceiveOptions(options)
      return requests.answerRequest({ headers: readHeaders(headers), path, query, remoteAddress: undefined }, () => {
        if (bytes.length > limit) throw bodyTooLarge(limit)
        return { bytes, source: 'argument' }
      })
    },
    start() {
      const startedInbox = requireHandling('start')
      if (handling === 'started') throw new TypeError('`start` was already called. Call it only once.')
      if (handling !== undefined) throw new TypeError(`\`start\` cannot be combined with \`work\`, ${NOT_BOTH}`)
      startedInbox.start()
      handlers.start()
      handling = 'started'
    },
    work: async (options) => {
      const checked = readWorkOptions(options)
      const workedInbox = requireHandling('work')
      if (handling === 'started') throw new TypeError(`\`work\` cannot be combined with \`start\`, ${NOT_BOTH}`)
      if (handling === 'working') throw new TypeError('`work` is already running. Await the previous call first.')
      handlers.start()
      handling = 'working'
      try {
        return await workedInbox.work(checked)
      } finally {
        handling = 'worked'
      }
    },
    pause: async () => requireInbox('pause').pause(),
    resume: () => requireInbox('resume').resume(),
    async *history(filter = {}) {
      yield* requireInbox('history').history(filter)
    },
    replay: async (replayOptions = {}) => requireInbox('replay').replay(replayOptions),
    deadLetters: async (page) => requireInbox('deadLetters').letters.deadLetters(page),
    redrive: (async (which: 'all', redriveOptions: { dryRun: true }) =>
      requireInbox('redrive').letters.redrive(which, redriveOptions)) as unknown as Receiver['redrive'],
    drop: async (which) => requireInbox('drop').letters.drop(which),
    forget: async (ids, options: ForgetOptions = {}) => {
      requireOptions('forget', options, ['source', 'suppressForMs'])
      const { source, suppressForMs } = options
      if (source !== undefined) requireText('source', source, 'shop')
      if (suppressForMs !== undefined) requireInteger('suppressForMs', suppressForMs, 0, Number.MAX_SAFE_INTEGER)
      return requireInbox('forget').forget(ids, options)
    },
    health: async () => {
      const health = await checkHealth(inbox && (() => inbox.counts()), closed !== undefined, clock)
      const { total: unplanned = 0 } = settings.unplanned ?? {}
      const paused = health.paused === true || inbox?.isPaused === true
      return { ...health, paused, ignored: handlers.ignored, unplanned, suppressed: inbox?.suppression.count ?? 0 }
    },
    close: async (options: ReceiverCloseOptions = {}) => {
      requireOptions('close', options, ['graceMs'])
      const graceMs = requireInteger('graceMs', options.graceMs ?? GRACE_MS, 0)
      closed ??= closeParts(graceMs)
      return closed
    },
  }
  rememberOptions(receiver, { ...options } as ReceiverOptions)
  return receiver as Receiver<EventsOf<Events, Strict>, Traits, Custom>

  function requireInbox(call: string): Inbox {
    if (inbox !== undefined) return inbox
    throw new TypeError(`\`${call}\` needs an inbox. Pass \`inbox\` to createReceiver.`)
  }

  /** Returns the inbox. Throws when its messages cannot be handled, because the receiver is closed, or has no inbox or no handler. */
  function requireHandling(call: string): Inbox {
    if (closed !== undefined) {
      throw new TypeError(`\`${call}\` needs an open receiver. This one is closed. Create a new receiver.`)
    }
    const found = requireInbox(call)
    if (handlers.size > 0) return found
    const advice = 'Call `on` first, because the inbox completes messages that no handler matches.'
    throw new TypeError(`\`${call}\` needs a handler. ${advice}`)
  }

  async function closeParts(graceMs: number): Promise<readonly StoredMessage[]> {
    const startedAt = clock.monotonic()
    await withTimeout(requests.stop(), Math.max(graceMs, ANSWERS_MS), clock)
    const restMs = Math.max(0, Math.ceil(graceMs - (clock.monotonic() - startedAt)))
    await dedupe?.close(restMs)
    const left = await inbox?.close(restMs) // Also refuses requests that still wait for an engine that does not respond.
    await nextTurn() // Gives hosts time to write the last answers.
    settings.log.flush()
    return left ?? []
  }
}

const GRACE_MS = 10_000
const NOT_BOTH = 'which was already called. Remove one of the two calls.'
/** The minimum time for requests in progress, in milliseconds, even when the grace period is shorter. */
const ANSWERS_MS = 300

function readReceiveOptions(options: ReceiveOptions = {}) {
  requireOptions('receive', options, ['path', 'query'])
  const { path, query } = options
  if (path !== undefined) requireText('path', path, '/webhooks')
  if (query !== undefined && query !== '') requireText('query', query, 'source=shop')
  return { path, query }
}

function readHeaders(headers: HeadersLike): EndpointHeaders {
  if (typeof headers !== 'object' || headers === null) {
    throw invalidOption(
      'receive: headers',
      'must be Headers or an object',
      kindOf(headers),
      'Pass the headers of the request.',
    )
  }
  if (Symbol.iterator in headers) return lowerCased([...headers])
  for (const name in headers) {
    if (name !== name.toLowerCase()) return lowerCased(Object.entries(headers))
  }
  return headers
}

function lowerCased(entries: readonly (readonly [string, EndpointHeaders[string]])[]): EndpointHeaders {
  const headers = new Map<string, EndpointHeaders[string]>()
  for (const [name, value] of entries) {
    const key = name.toLowerCase()
    headers.set(key, headers.has(key) ? `${headers.get(key)}, ${value}` : value)
  }
  return Object.fromEntries(headers)
}

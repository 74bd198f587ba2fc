/** The race of each request with its deadline: at each step, in every order in which the step, the deadline and `close` can come. */

import { expect, it, vi } from 'vitest'
import { bodyAborted } from '../../src/host/body.ts'
import type { EndpointBody } from '../../src/index.ts'
import type { Dedupe } from '../../src/receive/dedupe.ts'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { setUpInbox } from '../support/inbox.ts'
import { deliver, hostRequest, secret, setUp } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const DEADLINE_MS = 4_500
const GRACE_MS = 1_000

/** What a step waits for. A test resolves or rejects it. */
const createGate = () => ({ isReached: false, ...Promise.withResolvers<void>() })

function pass(gate: ReturnType<typeof createGate>): Promise<void> {
  gate.isReached = true
  return gate.promise
}

/** The steps of a request in their order, with the answers to one that takes too long, and to one that fails. */
const STEPS = {
  inline: [
    { step: 'body', late: 'body_timeout', failed: 'body_aborted' },
    { step: 'secret', late: 'secret_unavailable', failed: 'secret_unavailable' },
    { step: 'claim', late: 'dedupe_unavailable', failed: 'dedupe_unavailable' },
    { step: 'handler', late: 'handler_timeout', failed: 'handler_failed' },
    { step: 'confirm', late: undefined, failed: undefined }, // The message is handled: a fault is reported only.
  ],
  inbox: [
    { step: 'body', late: 'body_timeout', failed: 'body_aborted' },
    { step: 'secret', late: 'secret_unavailable', failed: 'secret_unavailable' },
    { step: 'push', late: 'inbox_unavailable', failed: 'inbox_unavailable' },
  ],
} as const

type Kind = keyof typeof STEPS
type StepName = (typeof STEPS)[Kind][number]['step']

function setUpSteps(kind: Kind) {
  const gates = {
    ...{ body: createGate(), secret: createGate(), claim: createGate() },
    ...{ handler: createGate(), confirm: createGate(), push: createGate() },
  }
  const calls: string[] = []
  const dedupe: Dedupe = {
    async claim() {
      await pass(gates.claim)
      calls.push('claim')
      return {
        async confirm() {
          await pass(gates.confirm)
          calls.push('confirm')
        },
        async release() {
          calls.push('release')
        },
      }
    },
    async close() {},
  }
  async function provideSecret(): Promise<string> {
    await pass(gates.secret)
    return secret
  }
  const { memory } = setUpInbox()
  const push: typeof memory.push = async (jobs) => {
    await pass(gates.push)
    calls.push('push')
    return memory.push(jobs)
  }
  const set = setUp({ secret: provideSecret, ...(kind === 'inline' ? { dedupe } : { inbox: { ...memory, push } }) })
  const { receiver } = set
  const answered = vi.fn()
  receiver.observe({ answered })
  receiver.on('track', async () => {
    calls.push('handler begins')
    await pass(gates.handler)
    calls.push('handler ends')
  })
  const bytes = signedRequest(JSON.stringify(fixtures.track), secret).bytes
  async function readBody(): Promise<EndpointBody> {
    await pass(gates.body)
    return { bytes, source: 'stream' }
  }
  const received = receiver.handle(hostRequest({ readBody }))
  const answer: { code?: string; status?: number } = {}
  void received.then((result) => {
    Object.assign(answer, { status: result.status, code: result.ok ? undefined : result.error.code })
  })
  return { ...set, gates, calls, answered, answer }
}

type Event = 'succeeds' | 'fails' | 'deadline' | 'close'

/** Every order of one end of the step, or none, with the deadline and `close`, or without them. */
function* ordersOf(ends: readonly Event[]): Generator<readonly Event[]> {
  for (const end of [[], ...ends.map((each) => [each])]) {
    for (const others of [[], ['deadline'], ['close'], ['deadline', 'close']] as const) {
      yield* permutationsOf<Event>([...end, ...others])
    }
  }
}

function permutationsOf<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length < 2) return [items]
  return items.flatMap((first, at) => permutationsOf(items.toSpliced(at, 1)).map((rest) => [first, ...rest]))
}

for (const kind of Object.keys(STEPS) as Kind[]) {
  for (const { step, late, failed: fault } of STEPS[kind]) {
    for (const order of ordersOf(['succeeds', 'fails'])) {
      it(`${kind}: at the ${step}: ${order.join(', ') || 'nothing'}, then the end`, async () => {
        const set = setUpSteps(kind)
        const { clock, gates, answer, answered, calls, errors, failed, receiver } = set
        for (const { step: other } of STEPS[kind]) if (other !== step) gates[other].resolve()
        await clock.advance(0)
        expect(gates[step].isReached).toBe(true)
        expect(answer).toEqual({})

        let closing: Promise<unknown> | undefined
        for (const event of order) {
          if (event === 'deadline') await clock.advance(DEADLINE_MS)
          if (event === 'close') closing = receiver.close({ graceMs: GRACE_MS })
          if (event === 'succeeds') gates[step].resolve()
          if (event === 'fails') gates[step].reject(step === 'body' ? bodyAborted() : new Error('no'))
          await clock.advance(0)
        }
        await clock.advance(DEADLINE_MS)
        gates[step].resolve()
        await clock.advance(0)
        await (closing ?? receiver.close({ graceMs: GRACE_MS }))
        await clock.advance(GRACE_MS)

        const end = order.find((event) => event !== 'close') ?? 'deadline'
        const code = { deadline: late, fails: fault, succeeds: undefined, close: undefined }[end]
        expect(answer.code).toBe(code)
        expect(answered).toHaveBeenCalledTimes(1)
        const isUnconfirmed = step === 'confirm' && end !== 'succeeds'
        expect(errors[0]?.code).toBe(isUnconfirmed ? 'dedupe_unavailable' : code)
        expect(calls).toEqual(callsOf(kind, step, order, end))
        expect(failed.map(({ path }) => path)).toEqual(errors.map(() => '/webhooks'))
      })
    }
  }
}

/** What was called by the end: nothing begins after the deadline, and a claim ends as its handler does. */
function callsOf(kind: Kind, step: StepName, order: readonly Event[], end: Event): readonly string[] {
  const isOpened = order.find((event) => event === 'succeeds' || event === 'fails') !== 'fails'
  const isInTime = end === 'succeeds'
  if (kind === 'inbox') return step === 'push' ? (isOpened ? ['push'] : []) : isInTime ? ['push'] : []
  const handled = ['claim', 'handler begins', 'handler ends', 'confirm']
  if (step === 'body' || step === 'secret') return isInTime ? handled : []
  if (step === 'claim') return isInTime ? handled : isOpened ? ['claim', 'release'] : []
  if (step === 'handler') return isOpened ? handled : ['claim', 'handler begins', 'release']
  return isOpened ? handled : handled.slice(0, 3)
}

it('whatever is thrown is an answer, and close() does not wait for it', async () => {
  const hostile = new Proxy({}, { getPrototypeOf: throwing('no') })
  const { receiver } = setUp({ onRejected: throwing(hostile as Error) })
  expect((await deliver(receiver, '{}')).status).toBe(500)
  await receiver.close({ graceMs: 60_000 })
})

it.each([
  ['confirm', 0, 200],
  ['confirm', 5_000, 503],
  ['release', 0, 500],
  ['release', 5_000, 503],
])('a dedupe store whose %s rejects with undefined after %i ms changes no answer: %i', async (step, ms, expected) => {
  const claimed = { confirm: vi.fn(async () => {}), release: vi.fn(async () => {}) }
  claimed[step as 'confirm'].mockRejectedValue(undefined)
  const { receiver, errors, clock } = setUp({ dedupe: { claim: () => claimed, close() {} } })
  receiver.on('*', async () => {
    await new Promise<void>((resolve) => clock.setTimeout(resolve, ms))
    if (step === 'release') throw new Error('no')
  })

  const answered = receiver.handle(hostRequest())
  await clock.advance(0)
  await clock.advance(ms)

  expect((await answered).status).toBe(expected)
  expect(claimed.confirm.mock.calls.length + claimed.release.mock.calls.length).toBe(1)
  expect(errors.map(({ code }) => code)).toContain('dedupe_unavailable')
})

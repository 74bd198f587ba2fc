/** What `hookline check --sender` finds in small senders, each with one fault: in this process, many at a time. */

import { expect, it, vi } from 'vitest'
import { SENDER_CASES } from '../../../src/cli/check-sender/cases.ts'
import { runCases } from '../../../src/cli/check-sender/run.ts'
import { type Fault, hmac, type Message, SECRET, sendAll } from './senders.ts'

const WAIT_MS = 3_000
/** Those that wait for timeouts take as long as a timeout. */
const SLOW = ['slow-answer', 'timeout', 'retry-timeout']
const QUICK = SENDER_CASES.map(({ id }) => id).filter((id) => !SLOW.includes(id))

/** What each case finds that does not pass: `{ method: 'fail' }`. */
async function judge(fault: Fault, ids: readonly string[], more = 0): Promise<Record<string, string>> {
  const { promise: url, resolve } = Promise.withResolvers<string>()
  const cases = SENDER_CASES.filter(({ id }) => ids.includes(id))
  const messages = new Set(cases.flatMap(({ scenarios }) => scenarios)).size
  const settings = {
    host: '127.0.0.1',
    port: 0,
    waitMs: WAIT_MS,
    signal: new AbortController().signal,
    onListening: resolve,
  }
  const results = runCases(cases, SECRET, settings)
  await sendAll(await url, messages + more, fault)
  const bad = (await results).filter(({ result }) => result !== 'pass')
  return Object.fromEntries(bad.map(({ id, result, sentence }) => [id, `${result}: ${sentence}`]))
}

vi.spyOn(process.stderr, 'write').mockReturnValue(true)

const two = (message: Message, separator: string): string =>
  [message, { ...message, userId: 'u2' }].map((each) => JSON.stringify(each)).join(separator)

const FAULTS: readonly (readonly [name: string, fault: Fault, expected: Readonly<Record<string, RegExp>>])[] = [
  ['none', {}, {}],
  ['PUT in place of POST', { method: 'PUT' }, { method: /^fail: .*Got PUT\.$/ }],
  ['a path of its own', { path: '/track' }, { path: /^fail: .*Got \/webhooks\/track\./ }],
  [
    'a form',
    { headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { 'content-type': /^fail: .*Got application\/x-www/ },
  ],
  ['no user agent', { headers: { 'user-agent': undefined } }, { 'user-agent': /^fail: .*Got none\.$/ }],
  [
    'another user agent',
    { headers: { 'user-agent': 'curl/8.5' } },
    { 'user-agent-form': /^warn: .*Got curl\/8\.5\.$/ },
  ],
  ['no signature', { sign: () => undefined }, { signature: /^fail: .*Got none\./ }],
  ['SHA-256', { sign: (body, secret) => hmac('sha256', body, secret) }, { signature: /^fail: .*SHA-256/ }],
  [
    'upper case',
    { sign: (body, secret) => hmac('sha1', body, secret).toUpperCase() },
    { signature: /^fail: .*upper case/ },
  ],
  [
    'two messages in an array',
    { write: (message) => `[${two(message, ',')}]` },
    { 'one-message': /^fail: .*Got 2 messages in an array/ },
  ],
  [
    'two messages in a field',
    { write: (message) => `{"batch":[${two(message, ',')}]}` },
    { 'one-message': /^fail: .*Got 2 messages in `batch`/ },
  ],
  ['two messages in lines', { write: (message) => two(message, '\n') }, { 'one-message': /^fail: .*Got 2 messages/ }],
  [
    'no type',
    { write: (message) => JSON.stringify({ ...message, type: undefined }) },
    { message: /^fail: .*`type` must be/ },
  ],
  ['no version', { write: ({ version: _, ...message }) => JSON.stringify(message) }, { version: /^warn: / }],
  [
    'seconds',
    {
      write: (message) =>
        JSON.stringify({
          ...message,
          timestamp: `${message.timestamp?.replace(/\.\d+Z/, 'Z')}`,
          userId: message.timestamp,
        }),
    },
    { timestamp: /^warn: / },
  ],
  [
    'retries after a success',
    { isRetried: (status, attempt) => status >= 500 || (attempt === 1 && status === 200) },
    { 'taken-once': /^fail: / },
  ],
  [
    'retries after 404',
    { isRetried: (status) => status >= 500 || status === 404 },
    { 'refused-once': /^fail: .*answered 404\.$/ },
  ],
  [
    'no retry',
    { isRetried: () => false },
    { 'retry-500': /^fail: /, 'retry-again': /^skip: /, 'retry-503': /^fail: /, 'identical-retry': /^skip: / },
  ],
  ['no retry after 503', { isRetried: (status) => status === 500 }, { 'retry-503': /^fail: / }],
  ['one retry only', { isRetried: (status, attempt) => status >= 500 && attempt === 1 }, { 'retry-again': /^fail: / }],
  [
    'other spaces on a retry',
    { write: (message, attempt) => JSON.stringify(message, null, attempt) },
    { 'identical-retry': /^fail: .*identical bytes/ },
  ],
  [
    'another time on a retry, with the messageId',
    {
      write: (message, attempt) =>
        JSON.stringify({ ...message, timestamp: `2026-01-15T09:30:00.00${attempt}Z`, messageId: message.timestamp }),
    },
    { 'identical-retry': /^fail: .*identical bytes/ },
  ],
  [
    'no signature on a retry',
    retryWithoutSignature(),
    { signature: /^fail: /, 'identical-retry': /^fail: .*identical signature/ },
  ],
]

function retryWithoutSignature(): Fault {
  const seen = new Set<string>()
  return {
    sign(body, secret) {
      if (seen.has(body)) return undefined
      seen.add(body)
      return hmac('sha1', body, secret)
    },
  }
}

const TIMEOUTS: readonly (readonly [name: string, fault: Fault, expected: Readonly<Record<string, RegExp>>])[] = [
  ['none', {}, {}],
  [
    'a timeout of a second',
    { timeoutMs: 1_000 },
    { timeout: /^fail: .*waited [\d.]+ s only/, 'slow-answer': /^fail: .*gave up after [\d.]+ s/ },
  ],
  ['a timeout of eight seconds', { timeoutMs: 8_000 }, { timeout: /^fail: .*The sender waited [78][\d.]* s\.$/ }],
  ['no timeout', { timeoutMs: 60_000 }, { timeout: /^fail: .*After 1[\d.]+ s the sender still waited\.$/ }],
  ['no retry after a timeout', { isRetried: (status) => status >= 500 }, { 'retry-timeout': /^fail: / }],
]

// All at once: each waits for seconds.
const found = new Map([
  ...FAULTS.map(([name, fault]) => [name, judge(fault, QUICK)] as const),
  ...TIMEOUTS.map(([name, fault]) => [`timeouts: ${name}`, judge(fault, SLOW)] as const),
])

it.each([...FAULTS, ...TIMEOUTS.map(([name, ...rest]) => [`timeouts: ${name}`, ...rest] as const)])(
  '%s',
  async (name, _fault, expected) => {
    const findings = (await found.get(name)) ?? {}
    for (const [id, pattern] of Object.entries(expected)) expect(findings[id]).toMatch(pattern)
    const others = Object.entries(findings).filter(([id, finding]) => !(id in expected) && !finding.startsWith('skip'))
    expect(others).toEqual([])
  },
)

it('skips what no message came for', async () => {
  const findings = await judge({ isRetried: () => false }, ['method', 'taken-once', 'refused-once'], -3)
  expect(findings).toEqual({ 'refused-once': 'skip: No message came for it. Send as many as the command says.' })
})

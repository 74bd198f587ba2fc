import { expect, onTestFinished, test, vi } from 'vitest'
import { isTransient, readRetryAfter } from '../../src/kit/retry.ts'

const now = Date.UTC(2026, 0, 15, 9, 30)

test.each([
  ['120', 120_000],
  ['0', 0],
  [' 7 ', 7_000],
  ['9'.repeat(400), 1_000_000_000_000],
  ['Thu Jan 15 09:31:00 2026', 60_000],
  [['5', 'soon', '7'], 7_000],
  ['Thu, 15 Jan 2026 09:31:00 GMT', 60_000],
  ['Thursday, 15-Jan-26 09:31:00 GMT', 60_000],
  ['Thu, 15 Jan 2026 09:00:00 GMT', 0],
])('%s is %i ms', (header, expected) => {
  expect(readRetryAfter(header, now)).toBe(expected)
})

test.each([
  ...[undefined, null, 120, [], ['soon'], '', 'soon', '-1', '1.5', '1e3', '0x10', '2026-01-15', 'Thu, 99 Foo 2026'],
])('%j is no delay', (header) => {
  expect(readRetryAfter(header, now)).toBeUndefined()
})

test('a date without a zone is meant in GMT, wherever the machine stands', () => {
  vi.stubEnv('TZ', 'America/New_York')
  onTestFinished(() => void vi.unstubAllEnvs())
  expect(new Date(now).getTimezoneOffset()).not.toBe(0)
  expect(readRetryAfter('Thu Jan 15 09:31:00 2026', now)).toBe(60_000)
})

test.each([408, 429, 500, 503, 599])('status %i may pass', (status) => {
  expect(isTransient(status)).toBe(true)
})

test.each([200, 302, 400, 404, 407, 409, 428, 430, 499, 600])('status %i is final', (status) => {
  expect(isTransient(status)).toBe(false)
})

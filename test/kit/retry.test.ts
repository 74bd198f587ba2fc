import { expect, test } from 'vitest'
import { isTransient, readRetryAfter } from '../../src/kit/retry.ts'

const now = Date.UTC(2026, 0, 15, 9, 30)

test.each([
  ['120', 120_000],
  ['0', 0],
  ['9'.repeat(400), 1_000_000_000_000],
  ['Thu Jan 15 09:31:00 2026', 60_000],
  [['5', 'soon', '7'], 7_000],
  ['Thu, 15 Jan 2026 09:31:00 GMT', 60_000],
  ['Thu, 15 Jan 2026 09:00:00 GMT', 0],
])('%s is %i ms', (header, expected) => {
  expect(readRetryAfter(header, now)).toBe(expected)
})

test.each([undefined, 120, [], ['soon'], '', 'soon', '-1', '1.5', '1e3', '0x10'])('%j is no delay', (header) => {
  expect(readRetryAfter(header, now)).toBeUndefined()
})

test('a status of 408, 429 and 5xx may pass, any other is final', () => {
  const statuses = [200, 302, 400, 404, 407, 408, 409, 428, 429, 430, 499, 500, 503, 599, 600]
  expect(statuses.filter(isTransient)).toEqual([408, 429, 500, 503, 599])
})

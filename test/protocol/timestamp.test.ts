import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { timestampOf, toTimestamp } from '../../src/protocol/timestamp.ts'

describe('ISO 8601 in UTC with milliseconds and Z', () => {
  it.each([
    ['2026-01-15T09:30:00.000Z', '2026-01-15T09:30:00.000Z'],
    ['2026-01-15T09:30:00Z', '2026-01-15T09:30:00.000Z'],
    ['2026-01-15T09:30:00.1Z', '2026-01-15T09:30:00.100Z'],
    ['2026-01-15T09:30:00.123999999Z', '2026-01-15T09:30:00.123Z'],
    ['2026-01-15T09:30:00', '2026-01-15T09:30:00.000Z'],
    ['2026-01-15T09:30:00,5Z', '2026-01-15T09:30:00.500Z'],
    ['2026-01-15t09:30:00z', '2026-01-15T09:30:00.000Z'],
    ['2026-01-15 09:30:00Z', '2026-01-15T09:30:00.000Z'],
    ['2026-01-15T09:30:00-14', '2026-01-15T23:30:00.000Z'],
    ['2026-01-15T09:30:00+05:30', '2026-01-15T04:00:00.000Z'],
    ['2026-01-15T09:30:00+0530', '2026-01-15T04:00:00.000Z'],
    ['2026-01-15T24:00:00Z', '2026-01-16T00:00:00.000Z'],
    ['2026-01-15', '2026-01-15T00:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
  ])('%s', (text, timestamp) => {
    expect(toTimestamp(text)).toBe(timestamp)
  })

  it('of a Date', () => {
    expect(toTimestamp(new Date(0))).toBe('1970-01-01T00:00:00.000Z')
  })
})

describe('undefined for what is none', () => {
  it.each([
    ...['', 'now', '15.01.2026', 'Thu, 15 Jan 2026 09:30:00 GMT', '2026-1-5', '2026-01', '20260115T093000Z'],
    ...[' 2026-01-15T09:30:00Z', '2026-02-29T00:00:00.000Z', '2026-00-01', '2026-01-15T09Z', '2026-13-01'],
    ...['2026-02-30', '2026-02-29', '2026-01-15Z', '2026-01-15T25:00:00Z', '2026-01-15T09:60:00Z'],
    ...['2026-01-15T09:30:00+25:00', '2026-01-15T09:30:00+05:99', '2026-01-15T09:30:00Z\n'],
    ...['+012026-01-15T09:30:00Z', '0000-01-01T00:00:00+01:00', '9999-12-31T23:59:59-01:00'],
    ...[1_768_469_400_000, null, undefined, {}, new Date(Number.NaN), new Date(8.64e15)],
  ])('%j', (value) => {
    expect(toTimestamp(value)).toBeUndefined()
  })
})

describe('numbers', () => {
  it.each([
    [1_768_469_400_000, '2026-01-15T09:30:00.000Z'],
    [1_768_469_400, '2026-01-15T09:30:00.000Z'],
    [100_000_000_000, '1973-03-03T09:46:40.000Z'],
    [99_999_999_999, '5138-11-16T09:46:39.000Z'],
    [0, '1970-01-01T00:00:00.000Z'],
    [-1, '1969-12-31T23:59:59.000Z'],
    [253_402_300_800_000, undefined],
  ])('%d', (time, timestamp) => {
    expect(timestampOf(time)).toBe(timestamp)
  })
})

it('comes back as it is when it has that form already', () => {
  const range = {
    min: new Date('0000-01-01T00:00:00.000Z'),
    max: new Date('9999-12-31T23:59:59.999Z'),
    noInvalidDate: true,
  }
  fc.assert(
    fc.property(fc.date(range), (date) => {
      expect(toTimestamp(date)).toBe(date.toISOString())
      expect(toTimestamp(date.toISOString())).toBe(date.toISOString())
    }),
  )
})

import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { idOfDigest, idOfKey, newId } from '../../src/protocol/id.ts'

it('the id of a digest and the id of a key are UUIDs of version 8, and stay the same: stores keep them', () => {
  expect(idOfDigest('0123456789abcdef0123456789abcdef01234567')).toBe('01234567-89ab-8def-8123-456789abcdef')
  expect(idOfKey('order-1')).toBe('0bafe221-56d2-898c-843b-86040446d366')
})

describe('a new id', () => {
  it('is a UUID of version 7, another one each time', () => {
    const ids = Array.from({ length: 1000 }, newId)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(new Set(ids).size).toBe(1000)
  })

  it('sorts behind those of every millisecond before', () => {
    const spy = vi.spyOn(Date, 'now')
    onTestFinished(() => spy.mockRestore())
    const times = [1, 255, 256, 65_535, 65_536, Date.UTC(2026, 0, 1), Date.UTC(2026, 0, 1) + 1, Date.UTC(2100, 0, 1)]
    const ids = times.map((time) => {
      spy.mockReturnValue(time)
      return newId()
    })
    expect(ids.toSorted()).toEqual(ids)
  })
})

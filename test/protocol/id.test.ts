import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { newId } from '../../src/protocol/id.ts'

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

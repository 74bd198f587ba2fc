/** The contract of a dedupe store: the same for every store. */

import { afterEach, describe, expect, it } from 'vitest'
import type { Claim, Claimed, Dedupe } from '../../src/dedupe/store.ts'

/** A store to test, new and empty, with a dedupe window of {@link WINDOW_MS} and a lease of {@link LEASE_MS}. */
export interface TestedDedupe {
  readonly dedupe: Dedupe
  advance(ms: number): Promise<void>
}

export const WINDOW_MS = 60_000
export const LEASE_MS = 1000

/** The claim, when it is one. */
export function claimed(claim: Claim): Claimed {
  if (typeof claim === 'string') throw new Error(`it is ${claim}`)
  return claim
}

export function testDedupe(name: string, create: () => TestedDedupe | Promise<TestedDedupe>): void {
  const open: Dedupe[] = []
  afterEach(async () => {
    for (const dedupe of open.splice(0)) await dedupe.close()
  })

  async function setUp() {
    const { dedupe, advance } = await create()
    open.push(dedupe)
    const claim = async (key = 'key') => claimed(await dedupe.claim(key))
    const ask = async (key = 'key') => dedupe.claim(key)
    return { dedupe, advance, claim, ask }
  }

  describe(`${name}: a claim`, () => {
    it('of a thousand at once is for one', async () => {
      const { ask } = await setUp()
      const answers = await Promise.all(Array.from({ length: 1000 }, () => ask()))
      expect(answers.filter((answer) => answer !== 'in_progress')).toHaveLength(1)
    })

    it('confirmed makes the key done for the window, and no longer', async () => {
      const { claim, ask, advance } = await setUp()
      const first = await claim()
      await advance(LEASE_MS - 1)
      await first.confirm()
      await advance(WINDOW_MS - 1)
      expect(await ask()).toBe('done')
      await advance(1)
      await claim()
      expect(await ask()).toBe('in_progress')
    })

    it('released leaves the key to the next', async () => {
      const { claim, ask } = await setUp()
      await (await claim()).release()
      await (await claim()).confirm()
      expect(await ask()).toBe('done')
    })

    it('ends with its lease, and not before', async () => {
      const { claim, ask, advance } = await setUp()
      await claim()
      await advance(LEASE_MS - 1)
      expect(await ask()).toBe('in_progress')
      await advance(1)
      await claim()
      await advance(LEASE_MS - 1)
      expect(await ask()).toBe('in_progress')
    })

    it('ends once: a second confirm or release has no effect', async () => {
      const { claim, ask } = await setUp()
      const first = await claim('a')
      await first.confirm()
      await first.release()
      expect(await ask('a')).toBe('done')
      const second = await claim('b')
      await second.release()
      await second.confirm()
      await claim('b')
    })

    it('confirmed again does not begin the window anew', async () => {
      const { claim, advance } = await setUp()
      const first = await claim()
      await first.confirm()
      await advance(WINDOW_MS - 1)
      await first.confirm()
      await advance(1)
      await claim()
    })
  })

  describe(`${name}: a claim whose lease is over`, () => {
    it('confirmed while no other claim holds the key makes it done', async () => {
      const { claim, ask, advance } = await setUp()
      const late = await claim()
      await advance(5 * LEASE_MS)
      await late.confirm()
      expect(await ask()).toBe('done')
    })

    it('confirmed after another claim whose lease is over too makes it done', async () => {
      const { claim, ask, advance } = await setUp()
      const late = await claim()
      await advance(LEASE_MS)
      await claim()
      await advance(LEASE_MS)
      await late.confirm()
      expect(await ask()).toBe('done')
    })

    it('confirmed while another claim holds the key has no effect', async () => {
      const { claim, ask, advance } = await setUp()
      const late = await claim()
      await advance(LEASE_MS)
      const holder = await claim()
      await late.confirm()
      expect(await ask()).toBe('in_progress')
      await holder.release()
      await claim()
    })

    it('released while another claim holds the key has no effect', async () => {
      const { claim, ask, advance } = await setUp()
      const late = await claim()
      await advance(LEASE_MS)
      await claim()
      await late.release()
      expect(await ask()).toBe('in_progress')
    })

    it.each(['confirm', 'release'] as const)('%s: has no effect when the key was done meanwhile', async (step) => {
      const { claim, ask, advance } = await setUp()
      const late = await claim()
      await advance(LEASE_MS)
      await (await claim()).confirm()
      await advance(WINDOW_MS - 1)
      await late[step]()
      expect(await ask()).toBe('done')
      await advance(1)
      await claim()
    })
  })

  describe(`${name}: keys`, () => {
    it.each(['a', 'A', ' a', '__proto__', 'constructor', 'a\u0000b', 'a\u0000c', 'é', 'é', '🎉', 'x'.repeat(200)])(
      '%j is itself and no other',
      async (key) => {
        const { claim, ask } = await setUp()
        await (await claim('other')).confirm()
        await (await claim(key)).confirm()
        expect(await ask(key)).toBe('done')
        await claim(`${key.slice(0, -1)}!`)
      },
    )

    it.each([
      ['empty', ''],
      ['too long', 'x'.repeat(201)],
      ['a number', 5],
      ['none', null],
    ])('of the wrong sort are refused: %s', async (_case, key) => {
      const { ask } = await setUp()
      await expect(ask(key as string)).rejects.toThrow(TypeError)
      if (key !== undefined) await expect(ask(key as string)).rejects.toThrow('1 to 200 characters')
    })

    it('of several windows, many of them, are each what they are', async () => {
      const { claim, ask, advance } = await setUp()
      for (let round = 0; round < 4; round += 1) {
        for (let index = 0; index < 100; index += 1) {
          const one = await claim(`${index}`)
          if (index % 3 === 0) await one.confirm()
          if (index % 3 === 1) await one.release()
        }
        expect(await ask('0')).toBe('done')
        await (await claim('1')).release()
        expect(await ask('2')).toBe('in_progress')
        await advance(WINDOW_MS / 2)
        expect(await ask('99')).toBe('done')
        await (await claim('2')).release()
        await advance(WINDOW_MS / 2)
      }
    })
  })

  describe(`${name}: close`, () => {
    it('closes the store, and may be called twice', async () => {
      const { dedupe, claim, ask } = await setUp()
      await claim()
      await dedupe.close()
      await dedupe.close()
      await expect(ask('other')).rejects.toMatchObject({ code: 'shutting_down' })
    })
  })
}

/** An inbox and a destination never get each other's jobs, whatever their queue is called and whichever process has it. */

import { randomUUID } from 'node:crypto'
import { expect, it, onTestFinished } from 'vitest'
import type { Queue, QueueUse } from '../../src/store/queue-types.ts'
import { jobOf, work } from '../support/queues.ts'
import { until } from '../support/until.ts'

export interface UsedEngine {
  open(name: string, onError: (error: unknown) => void): Queue
  remove?(name: string): Promise<unknown>
  /** Whether it refuses another use in `reserve`, and not in the calls that follow. */
  readonly refusesAtOnce: boolean
  readonly names: readonly string[]
}

export function testUse(engine: UsedEngine): void {
  function setUp(name: string = randomUUID()) {
    const errors: unknown[] = []
    const open = (use?: QueueUse) => {
      const queue = engine.open(name, (error) => errors.push(error))
      onTestFinished(async () => {
        await queue.close({ graceMs: 0 })
        await engine.remove?.(name)
      })
      if (use !== undefined) queue.reserve?.(use)
      return queue
    }
    const countAs = async (use: QueueUse) => open(use).counts()
    return { name, open, countAs, errors }
  }

  it.each([
    ['inbox', 'destination'],
    ['destination', 'inbox'],
  ] as const)('each call on a queue of an %s is refused to a %s, and nothing is claimed', async (use, other) => {
    const { name, open, errors } = setUp()
    const queue = open(use)
    await queue.push([jobOf()])
    const refusal = { code: 'queue_unavailable', message: expect.stringContaining(name) }
    if (engine.refusesAtOnce) {
      expect(() => open(other)).toThrow(expect.objectContaining(refusal))
      return
    }
    const refused = open(other)
    const seen = work(refused)

    const changes = [() => refused.push([jobOf()]), () => refused.redrive('all'), () => refused.drop('all')]
    for (const call of [...changes, refused.counts, refused.deadLetters])
      await expect(call()).rejects.toMatchObject(refusal)
    await until(() => errors.length > 0)
    expect([errors[0], seen]).toMatchObject([refusal, []])
    expect(await queue.counts()).toMatchObject({ waiting: 1 })
  })

  it('a use stays when everything that is stored is forgotten', async () => {
    const { open, countAs } = setUp()
    const queue = open('inbox')
    await queue.push([jobOf(), jobOf()])
    expect(await queue.forget(() => true)).toEqual({ deleted: 2, active: 0 })
    await open('inbox').push([jobOf()])
    await expect(countAs('destination')).rejects.toMatchObject({ code: 'queue_unavailable' })
  })

  it('queues of the same use share the jobs, and a queue that is used by hand has any', async () => {
    const { open, countAs } = setUp()
    await open('inbox').push([jobOf()])
    const byHand = open()
    await byHand.push([jobOf()])
    byHand.reserve?.('inbox')
    const seen = work(byHand)
    await byHand.drain()
    expect(seen).toHaveLength(2)
    await expect(countAs('destination')).rejects.toMatchObject({ code: 'queue_unavailable' })
  })

  it('two destinations of one process cannot share a queue, until the first is closed', async () => {
    const { open } = setUp()
    const first = open('destination')
    expect(() => open('destination')).toThrow(TypeError)
    await first.close({ graceMs: 0 })
    await open('destination').push([jobOf()])
  })

  it.each(engine.names)('a name such as %j is no other one', async (name) => {
    const { open, countAs } = setUp(`${name}-${randomUUID().slice(0, 8)}`)
    await open('inbox').push([jobOf()])
    await expect(countAs('destination')).rejects.toMatchObject({ code: 'queue_unavailable' })
    expect(await open('inbox').counts()).toMatchObject({ waiting: 1 })
  })
}

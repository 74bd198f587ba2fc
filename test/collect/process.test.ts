/** What a client does at the end of its process, in this process. */

import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { describe, expect, it, vi } from 'vitest'

vi.resetModules() // Clients of other files, left open in this process, would share its listeners.
const { eventsOf, numbered, setUp } = await import('./dispatcher.ts')

describe('the listeners for the end of the process', () => {
  const events = ['beforeExit', 'exit', 'SIGTERM', 'SIGINT', 'uncaughtException']
  const counts = () => events.map((event) => process.listenerCount(event))
  /** Calls the listener that was added last. */
  const callLast = (event: 'beforeExit' | 'exit') => process.listeners(event as 'exit').at(-1)?.(0)
  const before = counts()
  const [beforeExit = 0, exit = 0, ...others] = before

  it('are shared by all clients with calls, and removed with the last call', async () => {
    const clients = Array.from({ length: 20 }, () => setUp().client)
    expect(counts()).toEqual(before)
    for (const client of clients) client.track(numbered(0))
    expect(counts()).toEqual([beforeExit + 1, exit + 1, ...others])
    await Promise.all(clients.slice(1).map((client) => client.close()))
    expect(counts()).toEqual([beforeExit + 1, exit + 1, ...others])
    await clients[0]?.flush()
    expect(counts()).toEqual(before)
  })

  it('write how many calls are lost, and ignore that stderr takes nothing', async () => {
    const written: unknown[] = []
    const write = vi.spyOn(fs, 'writeSync').mockImplementation((...args) => {
      written.push(args)
      throw new Error('EAGAIN')
    })
    syncBuiltinESMExports()
    const { client } = setUp()
    client.track(numbered(0))
    callLast('exit')
    write.mockRestore()
    syncBuiltinESMExports()
    expect(written).toEqual([[2, expect.stringMatching(/1 call .*close\(\)/)]])
    await client.flush()
    expect(counts()).toEqual(before)
  })

  it('post once, and wait as long as close() does', async () => {
    const { client, clock, requests } = setUp(Array(20).fill(500))
    client.track(numbered(0))
    callLast('beforeExit')
    await clock.advance(0)
    expect([requests.length, clock.timers]).toEqual([1, 3]) // The deadline of the request, the retry, and the ten seconds.
    await clock.advance(10_000)
    const posted = requests.length
    expect([posted > 1, clock.timers]).toEqual([true, 1]) // The next flush.
    client.track(numbered(1))
    callLast('beforeExit')
    await clock.advance(0)
    expect(requests).toHaveLength(posted)
    const closed = client.close({ timeoutMs: 0 })
    await clock.advance(0)
    expect([(await closed).length, counts()]).toEqual([2, before])
  })

  it('post in vain for ten seconds, and then the calls count towards the next flush like new ones', async () => {
    const { client, clock, batches } = setUp(Array(4).fill(500), { flushAt: 2 })
    client.track(numbered(0))
    callLast('beforeExit')
    await clock.advance(10_000)
    expect(batches()).toHaveLength(4)

    client.track(numbered(1))
    await clock.advance(0)

    expect(eventsOf(batches()[4])).toEqual(['Event 0', 'Event 1'])
    expect(counts()).toEqual(before)
  })
})

import { expect, it } from 'vitest'
import { memoryQueue } from '../../src/queues/memory.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { deliver, setUp } from '../support/receive.ts'

it('smoke', async () => {
  const clock = manualClock()
  const { receiver, errors } = setUp({ clock, inbox: memoryQueue({ clock }) })
  let runs = 0
  receiver.on('track', () => {
    if (++runs < 3) throw new Error('no')
  })
  receiver.start()
  expect(await deliver(receiver, fixtures.track)).toMatchObject({ ok: true, status: 200 })
  await clock.advance(6000)
  expect(runs).toBe(3)
  expect(errors).toHaveLength(2)
  expect(await deliver(receiver, '{}')).toMatchObject({ ok: false, status: 200, error: { code: 'message_invalid' } })
  await clock.advance(0)
  expect(await receiver.dead()).toMatchObject([{ reason: 'message_invalid', attempts: 1 }])
  expect(await receiver.health()).toEqual({ status: 'ok', waiting: 0, active: 0, dead: 1, oldestDueAgeMs: 0 })
  expect(await receiver.close()).toEqual([])
})

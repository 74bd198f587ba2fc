/** A job that is not a message, or that a queue cannot read, becomes a dead letter loudly: a line, the callbacks, the alarm. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { HooklineError } from '../../src/protocol/error.ts'
import { memoryQueue } from '../../src/queues-memory.ts'
import { createReceiver } from '../../src/receive/create-receiver.ts'
import type { ReceiverOptions } from '../../src/receive/receiver-options.ts'
import type { DeadLetterMessage } from '../../src/receive/stored-message.ts'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import type { DestinationDeadLetter } from '../../src/send/destination-types.ts'
import type { DeadLetter, Queue } from '../../src/store/queue-types.ts'
import { capture } from '../../src/testing.ts'
import { watchConsole } from '../support/console.ts'
import { jobOf } from '../support/queues.ts'
import { secret } from '../support/receive.ts'

const reason = 'Hookline did not write this job.'
const letter: DeadLetter = { ...jobOf(), reason, retryState: undefined, failedAt: new Date(5) }
const shown = { id: letter.id, reason: 'unreadable' }
const lineOf = (id: string) => ({ level: 'error', text: expect.stringContaining(`dead letter ${id}`) })

/** A queue in memory whose store makes a dead letter by itself, as a durable one does with what it cannot read. */
function queueWithLetter(): Queue {
  const memory = memoryQueue()
  return {
    ...memory,
    work(handle, options) {
      const wake = memory.work(handle, options)
      options.onUnreadable?.(letter)
      return wake
    },
  }
}

describe('a job that its queue cannot read', () => {
  it('of an inbox: a line, onError and onDeadLetter', () => {
    const printed = watchConsole()
    const [letters, errors]: [DeadLetterMessage[], HooklineError[]] = [[], []]
    const start = (more: Pick<ReceiverOptions, 'onError'> = {}) => {
      const onDeadLetter = (one: DeadLetterMessage) => void letters.push(one)
      const receiver = createReceiver({ secret, onDeadLetter, inbox: queueWithLetter(), ...more })
      receiver.on('*', () => {}).start()
    }
    start()
    expect(printed).toEqual([lineOf(letter.id)])
    start({ onError: (error) => void errors.push(error) })
    expect(errors).toMatchObject([{ code: 'internal', message: expect.stringContaining(letter.id) }])
    expect(letters).toMatchObject([shown, shown])
    expect(printed).toHaveLength(1)
  })

  const webhooks = [{ url: 'https://shop.example/webhooks' }]

  function createWith(options: Partial<DestinationOptions>) {
    const letters: DestinationDeadLetter[] = []
    const { dispatcher, requests } = capture()
    const onDeadLetter = (one: DestinationDeadLetter) => void letters.push(one)
    const destination = createDestination({ webhooks, dispatcher, onDeadLetter, ...options })
    onTestFinished(async () => void (await destination.close({ graceMs: 0 })))
    return { letters, requests }
  }

  it('of a destination: a line, onAttempt and onDeadLetter', () => {
    const printed = watchConsole()
    const reports: DeliveryReport[] = []
    const { letters } = createWith({ queue: queueWithLetter() })
    expect(printed).toEqual([lineOf(letter.id)])
    createWith({ queue: queueWithLetter(), onAttempt: (report) => reports.push(report) })
    expect(printed).toHaveLength(1)
    expect(reports).toMatchObject([{ status: 'failed', reason: 'unreadable', attempts: [] }])
    expect(() => reports[0]?.message).toThrow(HooklineError)
    expect(letters).toMatchObject([{ ...shown, message: undefined }])
  })

  it('and an envelope of an inbox in the queue of a destination: the same', async () => {
    const printed = watchConsole()
    const queue = memoryQueue()
    const { letters, requests } = createWith({ queue })
    const job = jobOf('{"hookline":1}\n{"type":"track"}')
    await queue.push([job])
    await queue.drain()
    expect(printed).toEqual([lineOf(job.id)])
    expect(letters).toMatchObject([{ id: job.id, reason: 'unreadable', message: undefined }])
    expect(requests).toEqual([])
  })
})

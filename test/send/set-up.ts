/** A destination on a manual clock, whose network is a script. */

import { onTestFinished } from 'vitest'
import { createDestination } from '../../src/send/create-destination.ts'
import type { DeliveryReport } from '../../src/send/destination-events.ts'
import type { DestinationOptions } from '../../src/send/destination-options.ts'
import { capture, type ManualClock, manualClock, type Script } from '../../src/testing.ts'

export function setUp(script: Script = [200], options: Partial<DestinationOptions> = {}) {
  const clock = (options.clock as ManualClock | undefined) ?? manualClock()
  const captured = capture({ script })
  const reports: DeliveryReport[] = []
  const destination = createDestination({
    webhooks: [{ url: 'https://shop.example/webhooks' }],
    sharedSecret: 'secret',
    dispatcher: captured.dispatcher,
    clock,
    random: () => 0.5,
    onAttempt: (report) => reports.push(report),
    ...options,
  })
  onTestFinished(() => void destination.close({ graceMs: 0 }))
  const start = clock.now()
  const startsOf = (report: DeliveryReport | undefined) => report?.attempts.map(({ at }) => at.getTime() - start)
  return { clock, captured, reports, destination, start, startsOf, last: () => reports.at(-1) }
}

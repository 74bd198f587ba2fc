/** testQueue(): the contract of queues as tests, for any test runner. */

import { argumentCases } from './arguments.ts'
import { closeCases } from './close.ts'
import { type Cases, runCase } from './context.ts'
import { deadLetterCases } from './dead-letters.ts'
import { durableCases } from './durable.ts'
import { forgetCases } from './forget.ts'
import { pushCases } from './push.ts'
import { retryCases } from './retry.ts'
import { sharedCases } from './shared.ts'
import type { QueueTest, TestedQueue } from './tested-queue.ts'
import { workCases } from './work.ts'

/**
 * Returns the tests that each queue has to pass: what the contract promises, and nothing more. Every test opens its own queue.
 *
 * @param create Opens a new, empty queue. A test fails when the queue breaks the rule that the test is named after.
 * @example
 * describe('my engine', () => {
 *   for (const { name, run } of testQueue(create)) test(name, run)
 * })
 */
export function testQueue(create: () => TestedQueue | Promise<TestedQueue>): readonly QueueTest[] {
  const always: Cases = {
    ...pushCases,
    ...workCases,
    ...retryCases,
    ...deadLetterCases,
    ...forgetCases,
    ...closeCases,
    ...argumentCases,
  }
  const tests = Object.entries(always).map(([name, check]) => ({ name, run: () => runCase(create, check) }))
  const durable = Object.entries({ ...durableCases, ...sharedCases }).map(([name, check]) => ({
    name,
    run: () => runCase(create, async (context) => (context.isDurable ? check(context) : undefined)),
  }))
  return [...tests, ...durable]
}

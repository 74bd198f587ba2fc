/** The contract of queues, as tests for any test runner. */

import { requireOptions } from '../../kit/checks.ts'
import { closeCases } from './close.ts'
import { type Cases, type QueueTest, runCase, type TestedQueue, type TestQueueOptions } from './context.ts'
import { deadLetterCases } from './dead-letters.ts'
import { durableCases, leaseCases } from './durable.ts'
import { durableGroupCases, groupCases } from './group-cases.ts'
import { durableLogCases, logCases } from './log-cases.ts'
import { durableMarkCases, markCases } from './mark-cases.ts'
import { pushCases, retryCases, workCases } from './work.ts'

const OPTIONS = [
  'isDurable',
  'leaseMs',
  'hasLog',
  'hasGroups',
  'hasMarks',
] as const satisfies (keyof TestQueueOptions)[]

/**
 * Returns the tests that a queue has to pass: what the contract requires of it, and nothing more. Every test opens its own queue.
 *
 * @param create Opens a new, empty queue. A test fails when the queue breaks the rule that the test is named after.
 * @throws TypeError that names the invalid option.
 * @example
 * describe('my engine', () => {
 *   for (const { name, run } of testQueue(create, { leaseMs: 30_000 })) test(name, run)
 * })
 */
export function testQueue(
  create: () => TestedQueue | Promise<TestedQueue>,
  options: TestQueueOptions = {},
): readonly QueueTest[] {
  requireOptions('testQueue', options, OPTIONS)
  const { isDurable = true, leaseMs, hasLog = false, hasGroups = false, hasMarks = false } = options
  const suites: readonly (readonly [isPromised: boolean, cases: Cases])[] = [
    [true, pushCases],
    [true, workCases],
    [true, retryCases],
    [true, deadLetterCases],
    [true, closeCases],
    [isDurable, durableCases],
    [leaseMs !== undefined, leaseCases],
    [hasLog, logCases],
    [hasLog && isDurable, durableLogCases],
    [hasGroups, groupCases],
    [hasGroups && isDurable, durableGroupCases],
    [hasMarks, markCases],
    [hasMarks && isDurable, durableMarkCases],
  ]
  const cases = suites.flatMap(([isPromised, cases]) => (isPromised ? Object.entries(cases) : []))
  return cases.map(([name, check]) => ({ name, run: () => runCase(create, check, options) }))
}

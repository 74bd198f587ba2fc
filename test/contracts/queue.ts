/** The contract of queues in Vitest; the tests themselves are part of `hookline/testing`. */

import { describe, test } from 'vitest'
import type { TestedQueue, TestQueueOptions } from '../../src/testing/test-queue/context.ts'
import { testQueue as testsOf } from '../../src/testing/test-queue/test-queue.ts'

export type { TestedQueue }

type Create = () => TestedQueue | Promise<TestedQueue>

/** Every test but those of durable queues. */
export function testQueue(name: string, create: Create, options?: TestQueueOptions): void {
  declare(name, create, options, false)
}

/** The tests of durable queues alone, which may need a queue that polls. */
export function testDurableQueue(name: string, create: Create, options?: TestQueueOptions): void {
  declare(`${name}, shared`, create, options, true)
}

function declare(title: string, create: Create, options: TestQueueOptions | undefined, isDurable: boolean): void {
  const createPatient = async () => ({ timeoutMs: 20_000, ...(await create()) }) // The machine may be busy.
  describe(title, () => {
    const tests = testsOf(createPatient, { hasLog: true, hasGroups: true, hasMarks: true, ...options }).filter(
      ({ name }) => name.startsWith('durable: ') === isDurable,
    )
    for (const { name, run } of tests) test(name, run)
  })
}

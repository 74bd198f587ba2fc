/** The contract of queues in Vitest; the tests themselves are part of `hookline/testing`. */

import { describe, test } from 'vitest'
import { testQueue as testsOf } from '../../src/testing/test-queue/index.ts'
import type { TestedQueue } from '../../src/testing/test-queue/tested-queue.ts'

export type { TestedQueue }

type Create = () => TestedQueue | Promise<TestedQueue>

/** Every test but those of durable queues. */
export function testQueue(name: string, create: Create): void {
  declare(name, create, false)
}

/** The tests of durable queues alone, which may need a queue that polls. */
export function testDurableQueue(name: string, create: Create): void {
  declare(`${name}, shared`, create, true)
}

function declare(title: string, create: Create, isDurable: boolean): void {
  describe(title, () => {
    const tests = testsOf(create).filter(({ name }) => name.startsWith('durable: ') === isDurable)
    for (const { name, run } of tests) test(name, run)
  })
}

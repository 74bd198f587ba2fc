/** The contract of queues in Vitest; the tests themselves are part of `hookline/testing`. */

import { describe, test } from 'vitest'
import type { TestedQueue, TestQueueOptions } from '../../src/testing/test-queue/context.ts'
import { testQueue as testsOf } from '../../src/testing/test-queue/test-queue.ts'

export type { TestedQueue }

/** @param isShared Without it, the tests that open `another` queue are left out. */
export function testQueue(
  title: string,
  create: () => TestedQueue | Promise<TestedQueue>,
  { isShared = true, ...options }: TestQueueOptions & { readonly isShared?: boolean } = {},
): void {
  const createPatient = async () => ({ timeoutMs: 20_000, ...(await create()) }) // The machine may be busy.
  const tests = testsOf(createPatient, { hasLog: true, hasGroups: true, hasMarks: true, ...options })
  describe(title, () => {
    for (const { name, run } of tests) if (isShared || !name.startsWith('durable: ')) test(name, run)
  })
}

/** Which tests testQueue() returns, what fails those whose queue was described wrongly, and faults that they must notice. */

import { AssertionError } from 'node:assert/strict'
import { expect, test, vi } from 'vitest'
import { type TestQueueOptions, testQueue } from '../../src/testing.ts'
import { testedMemoryQueue } from '../support/memory.ts'
import { createFaulty, FAULTS, type Fault, PROMISED } from './test-queue-faults.ts'

const create = () => ({ ...testedMemoryQueue(), timeoutMs: 20 })

const namesOf = (options?: TestQueueOptions) => testQueue(create, options).map(({ name }) => name)

test('the list has the tests of what is promised', () => {
  const always = namesOf({ isDurable: false })
  const durable = (name: string) => name.startsWith('durable: ')
  const lease = (name: string) => name.startsWith('lease: ')
  expect(always.filter((name) => durable(name) || lease(name))).toEqual([])
  expect(namesOf().filter((name) => !durable(name))).toEqual(always)
  expect(namesOf({ leaseMs: 1_000 }).filter((name) => !lease(name))).toEqual(namesOf())
  expect(namesOf({ leaseMs: 1_000, isDurable: false }).filter(lease)).not.toEqual([])
  expect(namesOf().filter(durable)).not.toEqual([])
})

test('a test fails without the other queue that it needs', async () => {
  const tests = testQueue(create, { leaseMs: 1_000 })
  const failures = (kind: string) =>
    Promise.all(tests.filter(({ name }) => name.startsWith(kind)).map(({ run }) => run().then(() => 'passed', String)))
  expect(await failures('durable')).not.toContain('passed')
  expect(`${await failures('durable')}`).toContain('must be tested with `another`, which opens a second queue.')
  for (const failure of await failures('lease')) expect(failure).toContain('must be tested with `stalled`')
})

test('a test that fails closes its queue, and disposes of it', async () => {
  const tested = { ...create(), dispose: vi.fn(async () => {}) }
  const durable = testQueue(() => tested).find(({ name }) => name.startsWith('durable: '))
  await expect(durable?.run()).rejects.toBeInstanceOf(AssertionError)
  expect(tested.dispose).toHaveBeenCalledOnce()
  await expect(tested.queue.counts()).rejects.toMatchObject({ code: 'shutting_down' })
})

test('an option that does not exist is refused', () => {
  expect(() => testQueue(create, { durable: false } as never)).toThrow(/`durable` is not an option/)
})

test.each(Object.entries(FAULTS))(
  'an engine without the fault passes, and one with it fails: %s',
  async (name, fault) => {
    const { isDurable = true } = fault
    const run = async (fault: Fault) =>
      testQueue(() => createFaulty(fault), { ...PROMISED, isDurable })
        .find((test) => test.name.startsWith(name))
        ?.run()
    await run({ isDurable })
    await expect(run(fault)).rejects.toBeInstanceOf(AssertionError)
  },
)

import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, it } from 'vitest'
import { runSteps, type Steps } from '../../src/receiver/deadline.ts'

function run<T>(steps: Steps<T>): unknown[] {
  const ends: unknown[] = []
  runSteps(
    steps,
    (value) => ends.push(['succeed', value]),
    (error) => ends.push(['fail', error]),
  )
  return ends
}

it('ends at once where nothing is waited for', () => {
  function* succeed(): Steps<string> {
    return yield 'a'
  }
  // biome-ignore lint/correctness/useYield: that is the case
  function* fail(): Steps<never> {
    throw 'b'
  }
  expect([run(succeed()), run(fail())]).toEqual([[['succeed', 'a']], [['fail', 'b']]])
})

it('goes on with each result, in the async context in which it began', async () => {
  const storage = new AsyncLocalStorage<string>()
  const [one, two] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()]
  function* join(): Steps<string> {
    const texts: (string | undefined)[] = [yield one.promise, yield two.promise, storage.getStore()]
    return texts.join()
  }
  const ends = storage.run('a context', () => run(join()))
  one.resolve('a')
  await new Promise(setImmediate)
  expect(ends).toEqual([])
  storage.run('another', () => two.resolve('b'))
  await new Promise(setImmediate)
  expect(ends).toEqual([['succeed', 'a,b,a context']])
})

it('throws a rejection where it is waited for', async () => {
  function* caught(): Steps<string> {
    try {
      return yield Promise.reject('no')
    } catch (error) {
      return `caught ${error}`
    }
  }
  const ends = run(caught())
  await new Promise(setImmediate)
  expect(ends).toEqual([['succeed', 'caught no']])
})

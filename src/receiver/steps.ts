/** Functions that wait as async functions do, but make no promise where there is nothing to wait for. */

import { isThenable } from '../options/callbacks.ts'

/** Such a function is a generator, in which `yield value` stands for `await value`. What it gets is typed by where it goes. */
export type Steps<Result> = Generator<unknown, Result, never>

/**
 * Runs such a function, up to its first promise at once, and calls one of the two at its end. They must not throw.
 *
 * Hot path: an async function makes a promise for itself and one for each `await`, which a server pays for with each request.
 */
export function runSteps<Result>(
  steps: Steps<Result>,
  succeed: (result: Result) => void,
  fail: (error: unknown) => void,
): void {
  const resume = (how: 'next' | 'throw', given?: unknown): void => {
    let step: IteratorResult<unknown, Result>
    try {
      step = steps[how](given as never)
      while (!step.done && !isThenable(step.value)) step = steps.next(step.value as never)
    } catch (error) {
      fail(error)
      return
    }
    if (step.done) succeed(step.value)
    else
      void Promise.resolve(step.value).then(
        (value) => resume('next', value),
        (error) => resume('throw', error),
      )
  }
  resume('next')
}

/** Tells the developer's `onError` what failed. */

import type { HooklineError } from './error.ts'

/** Gives an error to `onError`. Whatever that does, the answer is not changed: when it fails, the process is warned. */
export async function report<Request>(
  onError: (error: HooklineError, request: Request) => unknown,
  error: HooklineError,
  request: Request,
): Promise<void> {
  try {
    await onError(error, request)
  } catch (failure) {
    process.emitWarning('onError failed', {
      code: 'HOOKLINE_ON_ERROR',
      detail: failure instanceof Error ? failure.message : 'It threw what is no Error.',
    })
  }
}

/** What `onError` is by default: prints the 5xx errors but `shutting_down`. */
export function printOurFaults(error: HooklineError): void {
  if (error.status >= 500 && error.code !== 'shutting_down') console.error(error)
}

/** What is printed to the console while a test runs. */

import { onTestFinished, vi } from 'vitest'

/** Keeps what is printed from now on to the end of the test, and prints nothing. */
export function watchConsole() {
  const printed: { readonly level: 'error' | 'warn'; readonly text: string }[] = []
  for (const level of ['error', 'warn'] as const) {
    const spy = vi
      .spyOn(console, level)
      .mockImplementation((...values) => void printed.push({ level, text: values.join(' ') }))
    onTestFinished(() => spy.mockRestore())
  }
  return printed
}

/** Prints a line for each request; on a terminal, which is slow, a bounded number a second. */

import { note, print } from '../../terminal.ts'

/** Prints lines. */
export interface Screen {
  show(lines: readonly string[]): void
  /** How many lines were left out. */
  readonly leftOut: number
  /** Says what was left out since the last time it said so. */
  close(): void
}

/** More than anyone reads. */
const LINES_A_SECOND = 100

/** Creates a screen. */
export function createScreen(isTerminal: boolean): Screen {
  let [shown, missing, leftOut] = [0, 0, 0]
  let second: NodeJS.Timeout | undefined

  function endSecond(): void {
    clearTimeout(second)
    second = undefined
    if (missing > 0) note(`… ${missing} lines left out: \`hookline list\` shows what is kept`)
    leftOut += missing
    ;[shown, missing] = [0, 0]
  }

  return {
    show(lines) {
      if (isTerminal) second ??= setTimeout(endSecond, 1_000)
      const some = isTerminal ? lines.slice(0, LINES_A_SECOND - shown) : lines
      shown += some.length
      missing += lines.length - some.length
      if (some.length > 0) print(some.join('\n'))
    },
    get leftOut() {
      return leftOut
    },
    close: endSecond,
  }
}

/** What bodies that inflate to far more than their limit cost, in a process of their own. */

import { expect, it } from 'vitest'
import { startProgram } from '../support/program.ts'
import { until } from '../support/until.ts'

it('bombs are refused, and cost no memory', async () => {
  const { child, lines } = startProgram(new URL('./programs/bombs.ts', import.meta.url), [])
  await until(() => lines.length > 0 || child.exitCode !== null)
  const { outcomes, growthMB } = JSON.parse(lines[0] ?? '')
  expect(outcomes).toEqual({
    '480 MB in 480 KB': 'body_too_large',
    '480 MB in 480 KB, deflate': 'body_too_large',
    '480 MB in 480 KB, many members': 'body_too_large',
    '1 GB in 1 MB in 2 KB': 'body_too_large',
    '256 MB in 256 KB in 1 KB': 'body_not_json', // It is inflated once.
  })
  expect(growthMB).toBeLessThan(128) // A single bomb of 480 MB would show.
})

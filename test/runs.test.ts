/** What holds in every run of tests, whatever they test. */

import fc from 'fast-check'
import { expect, test } from 'vitest'

test('random inputs are as long as their maxLength says', () => {
  const lists = fc.sample(fc.array(fc.nat(), { maxLength: 200 }))
  expect(Math.max(...lists.map(({ length }) => length))).toBeGreaterThan(100)
})

/** What is written for people. */

import { expect, it } from 'vitest'
import { formatInitials } from '../../src/page/format.ts'

it.each([
  ['app', 'a'],
  ['collector', 'co'],
  ['crm', 'cr'],
  ['orders', 'orders'],
  ['orders-eu', 'orders-'],
  ['elsewhere', 'e'],
])('the initials of %s are %s', (name, expected) => {
  expect(formatInitials(name, ['app', 'collector', 'crm', 'orders', 'orders-eu'])).toBe(expected)
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memberships, traitName } from '../../src/protocol/audience.ts'
import { fixtures } from '../../src/testing/fixtures.ts'

describe('traitName', () => {
  it.each([
    ['High Value Users', 'high_value_users'],
    ['high_value_users', 'high_value_users'],
    ['highValueUsers', 'high_value_users'],
    ['HTTPUsers', 'http_users'],
    ['top10Users', 'top10_users'],
    ["VIP's, over $100!", 'vip_s_over_100'],
    ['Top10 Buyers', 'top10_buyers'],
    ['  Trial  —  expired ', 'trial_expired'],
    ['Größe L', 'größe_l'],
  ])('%s is %s', (name, trait) => {
    expect(traitName(name)).toBe(trait)
  })

  it('of a trait is that trait', () => {
    fc.assert(
      fc.property(fc.stringMatching(/[a-z0-9]/), (name) => {
        expect(traitName(traitName(name))).toBe(traitName(name))
      }),
    )
  })

  it.each(['', '!?', undefined, 5])('refuses %j', (name) => {
    expect(() => traitName(name as never)).toThrow(TypeError)
  })
})

describe('memberships', () => {
  const { identify, track, page } = fixtures
  const change = (event: string, audience_key: unknown) => ({ ...track, event, properties: { audience_key } })

  it.each([
    [
      'identify with boolean traits',
      { ...identify, traits: { vip: true, old: false, plan: 'x' } },
      { vip: true, old: false },
    ],
    ['identify without traits', { ...identify, traits: undefined }, {}],
    ['Audience Entered', change('Audience Entered', 'vip'), { vip: true }],
    ['Audience Exited', change('Audience Exited', 'vip'), { vip: false }],
    ['Audience Entered of what is no name', change('Audience Entered', 5), {}],
    ['another event', change('Audience Created', 'vip'), {}],
    ['another type', page, {}],
  ])('%s', (_what, message, expected) => {
    expect(Object.fromEntries(memberships(message))).toEqual(expected)
  })
})

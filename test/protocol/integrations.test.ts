import { describe, expect, it } from 'vitest'
import { isMeantFor } from '../../src/protocol/integrations.ts'

describe('Go client library, Selecting destinations', () => {
  it.each<[string, unknown, boolean]>([
    ['1. a map from name to boolean: true', { Webhooks: true }, true],
    ['1. a map from name to boolean: false', { Webhooks: false }, false],
    ['2. names are case sensitive', { webhooks: false, WEBHOOKS: false }, true],
    ['2. equal the documented name', { 'Webhooks (Actions)': false }, true],
    ['2. All is case sensitive, too', { all: false }, true],
    ['3. by default all are enabled: none given', undefined, true],
    ['3. by default all are enabled: null', null, true],
    ['3. by default all are enabled: empty', {}, true],
    ['3. by default all are enabled: others named', { Amplitude: false }, true],
    ['4. All false disables every one', { All: false }, false],
    ['4. All false, and another key is true', { All: false, Amplitude: true }, false],
    ['4. All true changes nothing', { All: true }, true],
    ['5. a key set to true enables', { All: false, Webhooks: true }, true],
    ['a key set to false disables, though All is true', { All: true, Webhooks: false }, false],
    ['options in place of a boolean mean yes', { All: false, Webhooks: { secret: 1 } }, true],
    ['null is no answer', { All: false, Webhooks: null }, false],
  ])('%s', (_row, integrations, isMeant) => {
    expect(isMeantFor('Webhooks', integrations)).toBe(isMeant)
  })

  it('looks at own keys only', () => {
    expect(isMeantFor('Webhooks', Object.create({ Webhooks: false, All: false }))).toBe(true)
    expect(isMeantFor('constructor', { All: false })).toBe(false)
  })
})

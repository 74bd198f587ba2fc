/** The form of a message, a fault's form, and the words of changes to dead letters. */

import { describe, expect, it } from 'vitest'
import { describeDone, describePlan, nameChange } from '../../../src/inspector/page/dead-letters/wording.ts'
import { describeFault, readFault } from '../../../src/inspector/page/development/fault.ts'
import {
  type Draft,
  FIELDS,
  readJson,
  sampleOf,
  TAMPERINGS,
  toDraft,
  toMessage,
  withType,
} from '../../../src/inspector/page/send/draft.ts'
import type { MessageType } from '../../../src/message/message.ts'
import { MESSAGE_TYPES } from '../../../src/message/type-table.ts'
import { composeMessage } from '../../../src/sender/compose-call.ts'
import { TAMPERINGS as ALL } from '../../../src/sender/tamper.ts'
import { fixtures, manualClock } from '../../../src/testing.ts'

describe('a message in the form', () => {
  it.each([...MESSAGE_TYPES])('a sample of %s is a message that a sender accepts', (type) => {
    const { message, errors } = toMessage(sampleOf(type))
    expect(errors).toEqual({})
    const { message: composed } = composeMessage(message as never, manualClock())
    expect(composed).toMatchObject({ type })
  })

  it('is the message that it was made of, fields that the form does not show included', () => {
    const given = { type: 'track', userId: 'u', event: 'E', properties: { a: [1, { b: null }] }, messageId: 'm', x: 1 }
    const draft = toDraft(given) as Draft
    expect(draft.values).toEqual({ userId: 'u', event: 'E', properties: JSON.stringify(given.properties, null, 2) })
    expect(draft.rest).toEqual({ messageId: 'm', x: 1 })
    expect(toMessage(draft).message).toEqual(given)
  })

  it('has each id of an alias once', () => {
    const { version: _, previousId: __, timestamp, ...alias } = fixtures.alias
    const { message } = toMessage(toDraft({ ...alias, timestamp }) as Draft)
    expect(message).toEqual({ type: 'alias', previousId: 'anonymous-1', userId: 'user-1', timestamp })
  })

  it('sends no empty field', () => {
    const draft = { type: 'identify', values: { userId: 'u', anonymousId: ' ', traits: '' }, rest: {} } as const
    expect(toMessage(draft)).toEqual({ message: { type: 'identify', userId: 'u' }, errors: {} })
  })

  it('says at which field what is wrong', () => {
    const draft = { type: 'track', values: { properties: '{\n  "a": ]', context: '[1]' }, rest: {} } as const
    const { errors } = toMessage(draft)
    expect(errors.properties).toMatch(/^This is not JSON: Unexpected token '\]'/)
    expect(errors.context).toBe('This must be a JSON object: { "name": "value" }.')
  })

  it.each([
    ['no message', 5],
    ['a batch', { batch: [] }],
    ['another type', { type: 'constructor' }],
    ['an id that is no text', { type: 'track', userId: 5 }],
    ['properties that are no object', { type: 'track', properties: [] }],
  ])('is not %s', (_name, message) => {
    expect(toDraft(message)).toBeUndefined()
  })

  it('keeps what was entered when the type changes, and is a sample beside that', () => {
    const { values, ...sample } = sampleOf('track')
    const draft = withType({ ...sample, values: { ...values, userId: 'mine' }, rest: { messageId: 'm' } }, 'group')
    expect(draft).toEqual({
      type: 'group',
      values: { ...sampleOf('group').values, userId: 'mine' },
      rest: { messageId: 'm' },
    })
    expect(withType(sampleOf('page'), 'alias')).toEqual(sampleOf('alias'))
  })

  it('has fields for each type', () => {
    expect(Object.keys(FIELDS).sort()).toEqual([...MESSAGE_TYPES].sort() satisfies MessageType[])
  })

  it('explains each tampering', () => {
    expect(Object.keys(TAMPERINGS).sort()).toEqual([...ALL].sort())
  })
})

describe('JSON of the reader', () => {
  it('is parsed, or refused with the place', () => {
    expect(readJson('{"a":1}')).toEqual({ value: { a: 1 } })
    expect(readJson('').error).toMatch(/^This is not JSON.*\.$/)
    expect(readJson('{"a":1,}').error).toContain('line 1 column 8')
  })
})

describe('a fault', () => {
  const fields = { count: '3', status: '503', delayMs: '' }
  it('is read from its form', () => {
    expect(readFault('shop', fields)).toEqual({ part: 'shop', count: 3, status: 503 })
    expect(readFault('shop', { ...fields, status: '', delayMs: '2000' })).toEqual({
      part: 'shop',
      count: 3,
      delayMs: 2000,
    })
  })

  it.each([
    [{ ...fields, count: '' }, /^Requests/],
    [{ ...fields, count: '1.5' }, /^Requests/],
    [{ ...fields, count: '10001' }, /^Requests/],
    [{ ...fields, status: '' }, /^Choose/],
    [{ ...fields, status: '', delayMs: '0' }, /^Choose/],
    [{ ...fields, delayMs: '-1' }, /^The delay/],
    [{ ...fields, delayMs: '60001' }, /^The delay/],
  ])('is not %j', (wrong, error) => {
    expect(readFault('shop', wrong)).toMatch(error)
  })

  it('is said in words', () => {
    expect(describeFault(undefined)).toBe('Requests are answered normally.')
    expect(describeFault({ part: 'a', count: 0 })).toBe('Requests are answered normally.')
    expect(describeFault({ part: 'a', count: 1, status: 503 })).toBe('The next request is answered 503.')
    const delayed = 'The next 3 requests are answered normally after 2 s.'
    expect(describeFault({ part: 'a', count: 3, delayMs: 2_000 })).toBe(delayed)
  })
})

describe('a change to dead letters', () => {
  const reasons = [
    { reason: 'handler_failed', count: 1_000 },
    { reason: 'schema_mismatch', count: 2 },
  ]
  it('has a name', () => {
    expect(nameChange('redrive', {})).toBe('Redrive all')
    expect(nameChange('drop', { reason: 'x' })).toBe('Drop all x')
    expect(nameChange('drop', { ids: ['1', '2'] })).toBe('Drop 2 selected')
  })

  it('is described before and after', () => {
    const plan = 'Would redrive 1,002 dead letters of inbox: 1,000 handler_failed, 2 schema_mismatch.'
    expect(describePlan('redrive', 'inbox', { count: 1_002, reasons, dryRun: true })).toBe(plan)
    expect(describePlan('drop', 'inbox', { count: 0, reasons: [], dryRun: true })).toMatch(/^Would drop nothing/)
    expect(describeDone('drop', { count: 12, reasons, dryRun: false })).toBe('Dropped: 12.')
    expect(describeDone('redrive', { count: 1, reasons, dryRun: false })).toBe('Redriven: 1.')
  })
})

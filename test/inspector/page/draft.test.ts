/** The form of a message. */

import { describe, expect, it } from 'vitest'
import {
  type Draft,
  FIELDS,
  readJson,
  sampleOf,
  TAMPERINGS,
  toDraft,
  toMessage,
  withType,
} from '../../../src/inspector/page/draft.ts'
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

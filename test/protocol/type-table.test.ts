import { expect, expectTypeOf, it } from 'vitest'
import { MESSAGE_TYPES } from '../../src/index.ts'
import { CALL_TYPES, type CallType, isCallType, isMessageType } from '../../src/protocol/type-table.ts'

const NO_TYPES = ['purchase', 'Track', '', 'constructor', '__proto__', 'toString', 5, null, undefined, ['track'], {}]

it('there are seven types, each once', () => {
  expect(MESSAGE_TYPES).toEqual(['page', 'screen', 'identify', 'track', 'alias', 'group', 'delete'])
  expect(MESSAGE_TYPES.filter(isMessageType)).toEqual(MESSAGE_TYPES)
  expect(NO_TYPES.filter(isMessageType)).toEqual([])
})

it('a client may call all but delete', () => {
  expect(CALL_TYPES).toEqual(MESSAGE_TYPES.filter((type) => type !== 'delete'))
  expect([...NO_TYPES, 'delete'].filter(isCallType)).toEqual([])
  expectTypeOf<CallType>().toEqualTypeOf<'page' | 'screen' | 'identify' | 'track' | 'alias' | 'group'>()
})

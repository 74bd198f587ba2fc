import { describe, expect, expectTypeOf, it } from 'vitest'
import { MESSAGE_TYPES } from '../../src/index.ts'
import { CALL_TYPES, type CallType, createMethods, isCallType, isMessageType } from '../../src/protocol/type-table.ts'

const NO_TYPES = ['purchase', 'Track', '', 'constructor', '__proto__', 'toString', 5, null, undefined, ['track'], {}]

describe('the table', () => {
  it('has the seven types, each once', () => {
    expect(MESSAGE_TYPES).toEqual(['page', 'screen', 'identify', 'track', 'alias', 'group', 'delete'])
    expect(MESSAGE_TYPES.filter(isMessageType)).toEqual(MESSAGE_TYPES)
    expect(NO_TYPES.filter(isMessageType)).toEqual([])
  })

  it('lets a client call all but delete', () => {
    expect(CALL_TYPES).toEqual(MESSAGE_TYPES.filter((type) => type !== 'delete'))
    expect([...NO_TYPES, 'delete'].filter(isCallType)).toEqual([])
    expectTypeOf<CallType>().toEqualTypeOf<'page' | 'screen' | 'identify' | 'track' | 'alias' | 'group'>()
  })
})

describe('createMethods', () => {
  it('calls with the type and the argument of each method', () => {
    const methods = createMethods(MESSAGE_TYPES, (type, call) => [type, call])
    const call = { userId: 'u' }
    expect(Object.keys(methods)).toEqual(MESSAGE_TYPES)
    for (const type of MESSAGE_TYPES) expect(methods[type](call)).toEqual([type, call])
    expect(methods.track(call)[1]).toBe(call)
  })

  it('has methods for the types that were given, and no others', () => {
    const methods = createMethods(['track', 'page'], () => 5)
    expect(Object.keys(methods)).toEqual(['track', 'page'])
    expectTypeOf(methods).toEqualTypeOf<Readonly<Record<'track' | 'page', (call: object) => number>>>()
  })
})

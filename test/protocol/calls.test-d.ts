import { describe, expectTypeOf, it } from 'vitest'
import type { CallActor, Calls } from '../../src/protocol/calls.ts'
import type { MessageType } from '../../src/protocol/message.ts'

describe('Go client library, Message types, as types', () => {
  it('there is a call for each message', () => {
    expectTypeOf<keyof Calls>().toEqualTypeOf<MessageType>()
  })

  it('either id, or both', () => {
    expectTypeOf<{ userId: string }>().toExtend<CallActor>()
    expectTypeOf<{ anonymousId: string }>().toExtend<CallActor>()
    expectTypeOf<{ userId: string; anonymousId: null }>().toExtend<CallActor>()
    expectTypeOf<{ userId: null; anonymousId: string }>().toExtend<CallActor>()
    expectTypeOf<{ userId: null }>().not.toExtend<CallActor>()
    expectTypeOf<{ traits: object }>().not.toExtend<CallActor>()
  })

  it('what is required', () => {
    expectTypeOf<{ userId: string }>().not.toExtend<Calls['track']>()
    expectTypeOf<{ userId: string; event: string }>().toExtend<Calls['track']>()
    expectTypeOf<{ userId: string }>().not.toExtend<Calls['group']>()
    expectTypeOf<{ anonymousId: string; groupId: string }>().toExtend<Calls['group']>()
    expectTypeOf<{ userId: string }>().not.toExtend<Calls['alias']>()
    expectTypeOf<{ anonymousId: string; previousId: string }>().not.toExtend<Calls['alias']>()
    expectTypeOf<{ anonymousId: string }>().not.toExtend<Calls['delete']>()
  })

  it('a time is a Date or text', () => {
    expectTypeOf<Calls['page']['timestamp']>().toEqualTypeOf<string | Date | undefined>()
  })
})

import { inspect } from 'node:util'
import * as v from 'valibot'
import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import type { Schema, SchemaIssue } from '../../src/index.ts'
import { fixtures } from '../../src/testing.ts'
import { watchConsole } from '../support/console.ts'
import { deliver, schemaOf, setUp } from '../support/receive.ts'

const { track, identify, group } = fixtures

const pathOf = ({ path = [] }: SchemaIssue): string =>
  path.map((part) => String(typeof part === 'object' ? part.key : part)).join('.')

/** The same schema in two libraries: total is made a number, what is not named is dropped. */
const libraries = [
  {
    name: 'zod',
    order: z.object({ total: z.coerce.number(), lines: z.array(z.object({ sku: z.string() })).optional() }),
  },
  {
    name: 'valibot',
    order: v.object({
      total: v.pipe(v.union([v.string(), v.number()]), v.transform(Number), v.number()),
      lines: v.optional(v.array(v.object({ sku: v.string() }))),
    }),
  },
]

describe.each(libraries)('events, by $name', ({ order }) => {
  it('gives handlers what the schema puts out', async () => {
    const { receiver } = setUp({ events: { 'Order Completed': order } })
    const seen: unknown[] = []
    receiver.on('track', 'Order Completed', ({ properties }) => seen.push(properties.total))
    receiver.on('track', ({ properties }) => seen.push(properties)).on('*', ({ userId }) => seen.push(userId))
    await deliver(receiver, { ...track, properties: { total: '12.5', secret: 'x' } })
    expect(seen).toEqual([{ total: 12.5 }, 12.5, 'user-1'])
  })

  it('counts what does not fit, and says all that it found to callbacks alone', async () => {
    const onRejected = vi.fn()
    const { receiver, errors } = setUp({ events: { 'Order Completed': order }, onRejected })
    const handler = vi.fn()
    receiver.on('*', handler)
    const received = await deliver(receiver, { ...track, properties: { total: { card: '4111' } } })
    expect(received).toMatchObject({ status: 422, error: { code: 'schema_mismatch', path: 'properties' } })
    expect(JSON.parse(received.body)).toMatchObject({ path: 'properties', detail: errors[0]?.message })
    expect(received.body + inspect(errors[0], { depth: 9 }) + JSON.stringify(errors[0])).not.toMatch(/4111/)
    expect(errors[0]?.message).toMatch(/Found 1 issue: (invalid_type|union)\. See `issues`/)
    expect(errors[0]?.issues?.map(pathOf)).toEqual(['total'])
    expect([handler.mock.calls.length, onRejected.mock.calls.length]).toEqual([0, 1])
    expect(onRejected.mock.calls[0]?.[0]).toBe(errors[0])
    await deliver(receiver, { ...track, properties: { lines: [{ sku: 'a' }, {}] } })
    expect(errors[1]?.issues?.map(pathOf)).toEqual(['total', 'lines.1.sku'])
    expect(errors[1]?.message).toMatch(/Found 2 issues: \w+/)
  })

  it('takes a message without properties for an empty object', async () => {
    const { receiver } = setUp({ events: { 'Order Completed': order } })
    const received = await deliver(receiver, { type: 'track', userId: 'u', event: 'Order Completed' })
    expect(received).toMatchObject({ error: { code: 'schema_mismatch', issues: [{ path: [expect.anything()] }] } })
  })
})

describe('traits', () => {
  it('shapes those of users and of groups, each by its own schema', async () => {
    const { receiver } = setUp({
      traits: { identify: z.object({ logins: z.number() }), group: v.object({ name: v.string() }) },
    })
    const seen: unknown[] = []
    receiver.on('identify', ({ traits }) => seen.push(traits.logins))
    receiver.on('group', ({ traits }) => seen.push(traits.name))
    await deliver(receiver, identify)
    await deliver(receiver, group)
    expect(seen).toEqual([5, 'Analytical Engines'])
    expect(await deliver(receiver, { ...group, traits: {} })).toMatchObject({ error: { path: 'traits' } })
  })

  it('does not hide an audience that the schema drops', async () => {
    const { receiver } = setUp({ traits: { identify: z.object({ logins: z.number() }) } })
    const entered = vi.fn()
    receiver.onAudience('High Value Users', { entered })
    await deliver(receiver, identify)
    expect(entered).toHaveBeenCalledOnce()
    expect(entered.mock.calls[0]?.[0].traits).toEqual({ logins: 5 })
  })
})

describe('issues', () => {
  /** What the sender, `onError` and the log get. */
  async function refuse(schema: Schema<object>, properties: object) {
    const printed = watchConsole()
    const { receiver, errors } = setUp({ events: { 'Order Completed': schema }, logger: console })
    const { status, body } = await deliver(receiver, { ...track, properties })
    expect(status).toBe(422)
    return { error: errors[0], body, line: printed.map(({ text }) => text).join() }
  }

  const numbers = z.record(z.string(), z.number())
  it.each(['jane.doe@shop.example', 'ada\nFAKE LOG LINE', 'x'.repeat(41)])(
    'whose keys are data are shown nowhere, also of a schema that stops at its first: %j',
    async (key) => {
      const first = schemaOf(() => ({ issues: [{ message: key, path: [key] }] }))
      for (const schema of [numbers, first]) {
        const { error, body, line } = await refuse(schema, { [key]: 'x' })
        expect(JSON.parse(body)).toEqual({
          status: 422,
          code: 'schema_mismatch',
          path: 'properties',
          detail: error?.message,
        })
        for (const text of [body, inspect(error), line]) expect(text).not.toContain(key)
        expect(line).not.toMatch(/shop\.example|FAKE|xxx/)
        expect(error?.issues).toMatchObject([{ path: [key] }])
      }
    },
  )

  it('whose keys look like names are shown to the owner alone', async () => {
    const { error, body, line } = await refuse(numbers, { 'Line-Total_2 net': 'x' })
    expect(body + inspect(error)).not.toContain('Line-Total')
    expect(line).toContain('Location: Line-Total_2 net (invalid_type).')
  })

  const strict = v.object({ address: v.strictObject({ city: v.string() }) })
  it.each<[string, Schema<object>, object, string]>([
    [
      'that are data, once',
      z.object({ prices: numbers }),
      { prices: { '1@x': '', '2@x': '' } },
      'prices.* (invalid_type)',
    ],
    [
      'that are deep',
      schemaOf(() => ({ issues: [{ message: '', path: Array(12).fill('a') }] })),
      {},
      `${'a.'.repeat(10)}…`,
    ],
    ['that are unknown', strict, { address: { city: 'x', 'ada@x': 1 } }, 'address.* (strict_object)'],
    [
      'of lists',
      z.object({ a: z.array(z.number()) }),
      { a: [1, 'x', 'x', 'x', 'x'] },
      'a.1 (invalid_type), a.2 (invalid_type), a.3 (invalid_type), and 1 more',
    ],
  ])('are located in the log: keys %s', async (_what, schema, properties, faults) => {
    expect((await refuse(schema, properties)).line).toContain(` Location: ${faults}.`)
  })

  it.each([
    // biome-ignore lint/suspicious/noThenProperty: a thenable is what is tested
    ['issues of any promise', { then: (done: (result: object) => void) => done({ issues: [] }) }, 'schema_mismatch'],
    ['neither issues nor a value', {}, 'internal'],
    ['issues that are no list', { issues: 5 }, 'internal'],
  ])('%s', async (_what, result, code) => {
    const { receiver } = setUp({ events: { 'Order Completed': schemaOf(() => result) } })
    expect(await deliver(receiver, track)).toMatchObject({ error: { code } })
  })
})

/** Searching messages by their fields. */

import { describe, expect, it } from 'vitest'
import { type MessageFilter, matchMessage, requireFilter } from '../../src/store/filter.ts'

function matches(where: NonNullable<MessageFilter['where']>, sent: string): boolean {
  return matchMessage({ where })(Buffer.from(sent))
}

describe('a field', () => {
  it.each<[string, NonNullable<MessageFilter['where']>, string, boolean]>([
    ['a number', { 'properties.order_id': 42 }, '{"properties":{"order_id":42}}', true],
    ['a number in another spelling', { 'properties.order_id': 42 }, '{"properties":{"order_id":4.2e1}}', true],
    ['a number, but not its text', { 'properties.order_id': 42 }, '{"properties":{"order_id":"42"}}', false],
    ['a text, but not its number', { 'properties.order_id': '42' }, '{"properties":{"order_id":42}}', false],
    ['another number that contains it', { id: 42 }, '{"id":142}', false],
    ['a text', { 'context.page.title': 'Café' }, '{"context":{"page":{"title":"Café"}}}', true],
    ['a text whose characters are escaped', { id: 'Café' }, '{"id":"Caf\\u00e9"}', true],
    ['a name whose characters are escaped', { café: 1 }, '{"caf\\u00e9":1}', true],
    ['a text that is elsewhere in the message', { id: 'x' }, '{"id":"y","name":"x"}', false],
    ['true', { 'a.b': true }, '{"a":{"b":true}}', true],
    ['false', { 'a.b': false }, '{"a":{"b":true}}', false],
    ['null', { id: null }, '{"id":null}', true],
    ['null, but not a field that is missing', { id: null }, '{"other":1}', false],
    ['a path through a value', { 'id.length': 2 }, '{"id":"ab"}', false],
    ['an index of a list', { 'products.1.sku': 'b' }, '{"products":[{"sku":"a"},{"sku":"b"}]}', true],
    ['the length of a list, which was not sent', { 'products.length': 1 }, '{"products":[1],"length":2}', false],
    ['what objects inherit', { 'constructor.name': 'Object' }, '{"constructor name":"Object"}', false],
    ['a key with a dot', { 'traits.app.version': 2 }, '{"traits":{"app.version":2}}', true],
    ['a key with a dot first', { 'app.version': 2 }, '{"app.version":2,"app":{"version":1}}', true],
    ['a key with a dot first, not both', { 'app.version': 1 }, '{"app.version":2,"app":{"version":1}}', false],
    ['several, one of which does not match', { a: 1, 'b.c': 'x' }, '{"a":1,"b":{"c":"y"}}', false],
    ['what is no JSON', { a: 1 }, '{"a":1', false],
  ])('%s', (_, where, sent, expected) => {
    expect(matches(where, sent)).toBe(expected)
  })
})

it.each<[string, unknown]>([
  ['list: where', {}],
  ['list: where', 'id=1'],
  ['list: where: id', { id: Number.NaN }],
  ['list: where: id', { id: {} }],
  ['list: where: a.b', { id: 1, 'a.b': new Date() }],
])('`%s` is refused: %j', (name, where) => {
  expect(() => requireFilter('list', { where } as MessageFilter)).toThrow(`\`${name}\``)
})

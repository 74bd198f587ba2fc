/** DER against values worked out by hand or taken from X.690. */

import { expect, it } from 'vitest'
import { bitString, der, integer, objectId, sequence, utcTime } from '../../src/testing/der.ts'

it.each<[string, Buffer, string]>([
  ['a short length', der(0x04, Buffer.alloc(3, 1)), '0403010101'],
  ['an object identifier of X.690, 8.19', objectId('2.999.3'), '0603883703'],
  ['the identifier of RSA', objectId('1.2.840.113549'), '06062a864886f70d'],
  ['a number', integer(2), '020102'],
  ['a long number', integer(Buffer.from([1, 0])), '02020100'],
  ['bits', bitString(Buffer.from([0x04]), 2), '03020204'],
  ['a sequence', sequence(integer(1), integer(2)), '3006020101020102'],
  ['a time', utcTime('20491231235959Z'), `170d${Buffer.from('491231235959Z').toString('hex')}`],
])('%s', (_name, bytes, hex) => {
  expect(bytes.toString('hex')).toBe(hex)
})

it.each([
  [127, '7f'],
  [128, '8180'],
  [255, '81ff'],
  [256, '820100'],
  [65535, '82ffff'],
])('the length %i', (length, hex) => {
  expect(der(0x04, Buffer.alloc(length)).toString('hex', 1, 1 + hex.length / 2)).toBe(hex)
})

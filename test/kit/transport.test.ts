import { X509Certificate } from 'node:crypto'
import { expect, it } from 'vitest'
import { readCertificates } from '../../src/kit/transport-options.ts'
import { createCertificate } from '../../src/testing/certificates.ts'
import { expectRefusal } from '../support/refusal.ts'

const [one, other] = [createCertificate('private_ca').ca, createCertificate('private_ca').ca]
const BROKEN = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

it.each<[string, unknown, string[]]>([
  ['text', one, [one]],
  ['bytes', Buffer.from(one), [one]],
  ['a list', [one, Buffer.from(other)], [one, other]],
  ['a file of several', one + other, [one, other]],
  ['Windows line ends', one.replaceAll('\n', '\r\n'), [one.replaceAll('\n', '\r\n')]],
  ['a byte order mark', `\ufeff${one}`, [one]],
  ['comments around them', `# one\n${one}# other\n${other}`, [`${one}# other\n`, other]],
])('`ca` may be %s', (_name, ca, certificates) => {
  expect(readCertificates(ca)).toEqual(certificates)
})

it.each<[string, unknown]>([
  ['an empty list', []],
  ['a path', './ca.pem'],
  ['DER, which Node would skip', new X509Certificate(one).raw],
  ['a list with one that is none', [one, 'garbage']],
  ['a file whose last certificate is broken', one + BROKEN],
  ['a request for a certificate', one.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST')],
])('`ca` cannot be %s', async (_name, ca) => {
  await expectRefusal(() => readCertificates(ca), '`ca`', /BEGIN/)
})

import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { readCertificates } from '../../src/kit/transport-options.ts'
import { createCertificate } from '../../src/testing/certificates.ts'

const [one, other] = [createCertificate('private_ca').ca, createCertificate('private_ca').ca]
const BROKEN = '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n'

describe('ca', () => {
  it.each<[string, unknown, string[]]>([
    ['text', one, [one]],
    ['bytes', Buffer.from(one), [one]],
    ['a list', [one, Buffer.from(other)], [one, other]],
    ['a file of several', one + other, [one, other]],
    ['Windows line ends', one.replaceAll('\n', '\r\n'), [one.replaceAll('\n', '\r\n')]],
    ['a byte order mark', `\ufeff${one}`, [one]],
    ['comments around them', `# one\n${one}# other\n${other}`, [`${one}# other\n`, other]],
  ])('takes %s', (_name, ca, certificates) => {
    expect(readCertificates(ca)).toEqual(certificates)
  })

  it.each([
    ['an empty list', [], 'an empty list'],
    ['a path', './ca.pem', 'a string'],
    ['DER, which Node would skip', new X509Certificate(one).raw, 'bytes'],
    ['a list with one that is none', [one, 'garbage'], 'a list'],
    ['a file whose last certificate is broken', one + BROKEN, 'a string'],
    ['a request for a certificate', one.replaceAll('CERTIFICATE', 'CERTIFICATE REQUEST'), 'a string'],
  ])('refuses %s', (_name, ca, found) => {
    expect(() => readCertificates(ca)).toThrow(TypeError)
    expect(() => readCertificates(ca)).toThrow(
      `\`ca\` must contain readable PEM certificates. Got ${found}. Pass the content of a PEM file, for example await readFile('ca.pem').`,
    )
  })
})

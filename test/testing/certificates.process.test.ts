import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { createCertificate } from '../../src/testing/certificates.ts'
import { needs } from '../support/needs.ts'

it('openssl reads the certificate of a scripted endpoint as intended', needs('openssl'), () => {
  const { server, ca } = createCertificate('private_ca')
  const text = (pem: string) => execFileSync('openssl', ['x509', '-noout', '-text'], { input: pem, encoding: 'utf8' })
  const leaf = text(server.cert)
  for (const expected of ['Version: 3', 'prime256v1', 'ecdsa-with-SHA256', 'DNS:localhost, IP Address:127.0.0.1']) {
    expect(leaf).toContain(expected)
  }
  expect(leaf).toMatch(/Not After : Dec 31 23:59:59 2049 GMT/)
  expect(text(ca)).toMatch(/Basic Constraints: critical\s+CA:TRUE/)
  expect(text(ca)).toMatch(/Key Usage: critical\s+Certificate Sign\n/)
})

import { describe, expect, it } from 'vitest'
import { explainError } from '../../src/sender/attempt.ts'

const target = { path: '/hooks?token=t0ken', shown: 'https://shop.example/hooks?…' }
const explain = (error: unknown) => explainError(error, target)

const coded = (code: string, message = code) => Object.assign(new Error(message), { code })

describe('explainError', () => {
  it.each([
    ['DEPTH_ZERO_SELF_SIGNED_CERT', 'self_signed'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls'],
    ['CERT_HAS_EXPIRED', 'tls'],
    ['CERT_NOT_YET_VALID', 'tls'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls'],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'tls'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'tls'],
    ['EPROTO', 'tls'],
    ['UND_ERR_CONNECT_TIMEOUT', 'timeout'],
    ['ERR_TLS_HANDSHAKE_TIMEOUT', 'timeout'],
    ['ETIMEDOUT', 'timeout'],
    ['ENOTFOUND', 'dns'],
    ['EAI_AGAIN', 'dns'],
    ['ECONNREFUSED', 'refused'],
    ['EHOSTUNREACH', 'refused'],
    ['ENETUNREACH', 'refused'],
    ['EMFILE', 'refused'],
    ['ECONNRESET', 'reset'],
    ['EPIPE', 'reset'],
    ['UND_ERR_SOCKET', 'reset'],
    ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'reset'],
    ['HPE_INVALID_CONSTANT', 'http'],
    ['UND_ERR_HEADERS_OVERFLOW', 'http'],
    ['UND_ERR_DESTROYED', 'closed'],
    ['HOOKLINE_PRIVATE_ADDRESS', 'private_address'],
    ['SOMETHING_NEW', 'reset'],
  ])('%s is %s', (code, error) => {
    expect(explain(coded(code))).toEqual({ error, reason: code })
  })

  it('classifies the first of several addresses', () => {
    expect(explain(new AggregateError([coded('ECONNREFUSED'), coded('ETIMEDOUT')]))).toEqual({
      error: 'refused',
      reason: 'ECONNREFUSED',
    })
  })

  it('classifies the cause of an error without a code', () => {
    expect(explain(new Error('fetch failed', { cause: coded('ENOTFOUND') }))).toMatchObject({ error: 'dns' })
  })

  it('classifies an invalid response by the name of its error', () => {
    expect(explain(Object.assign(new Error('broken'), { name: 'HTTPParserError' }))).toMatchObject({ error: 'http' })
  })

  it.each([[undefined], [null], ['text'], [{}]])('classifies %j as reset', (thrown) => {
    expect(explain(thrown)).toMatchObject({ error: 'reset' })
  })

  it('does not show the query of the URL', () => {
    expect(explain(new Error('no route for /hooks?token=t0ken here')).reason).toBe(
      'no route for https://shop.example/hooks?… here',
    )
  })

  it('cuts the reason at 200 characters', () => {
    expect(explain(coded('EPIPE', 'x'.repeat(500))).reason).toHaveLength(200)
  })
})

import { describe, expect, it } from 'vitest'
import { explain as explainAt } from '../../src/sender/failure.ts'

const target = { path: '/hooks?token=t0ken', shown: 'https://shop.example/hooks?…' }
const explain = (error: unknown) => explainAt(error, target)

const coded = (code: string, message = code) => Object.assign(new Error(message), { code })

describe('explain', () => {
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

  it('looks at the first of several addresses', () => {
    expect(explain(new AggregateError([coded('ECONNREFUSED'), coded('ETIMEDOUT')]))).toEqual({
      error: 'refused',
      reason: 'ECONNREFUSED',
    })
  })

  it('looks at the cause of an error without a code', () => {
    expect(explain(new Error('fetch failed', { cause: coded('ENOTFOUND') }))).toMatchObject({ error: 'dns' })
  })

  it('knows a broken answer by its name', () => {
    expect(explain(Object.assign(new Error('broken'), { name: 'HTTPParserError' }))).toMatchObject({ error: 'http' })
  })

  it.each([[undefined], [null], ['text'], [{}]])('takes %j for a broken connection', (thrown) => {
    expect(explain(thrown)).toMatchObject({ error: 'reset' })
  })

  it('does not say the query of the URL', () => {
    expect(explain(new Error('nobody for /hooks?token=t0ken here')).reason).toBe(
      'nobody for https://shop.example/hooks?… here',
    )
  })

  it('says no more than 200 characters', () => {
    expect(explain(coded('EPIPE', 'x'.repeat(500))).reason).toHaveLength(200)
  })
})

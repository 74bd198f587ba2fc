import { describe, expect, it } from 'vitest'
import { explainError } from '../../src/send/url-attempt.ts'

const target = { path: '/hooks?token=t0ken', shown: 'https://shop.example/hooks?…' }

describe('explainError', () => {
  it('says what must be so, what was found, and what to do', () => {
    const error = Object.assign(new Error('connect ECONNREFUSED 192.0.2.1:443'), { code: 'ECONNREFUSED' })
    expect(explainError(error, target)).toEqual({
      error: 'refused',
      reason:
        'The server must accept connections. Got connect ECONNREFUSED 192.0.2.1:443. Start it, or correct the host and the port of the URL.',
    })
  })

  it('does not show the query of the URL', () => {
    expect(explainError(new Error('no route for /hooks?token=t0ken here'), target).reason).toContain(
      'Got no route for https://shop.example/hooks?… here. ',
    )
  })
})

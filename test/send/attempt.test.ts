import { expect, it } from 'vitest'
import { explainError } from '../../src/send/url-attempt.ts'

it('an error that quotes the path is explained without the query of the URL', () => {
  const target = { path: '/hooks?token=t0ken', shown: 'https://shop.example/hooks?…' }

  const { reason } = explainError(new Error('no route for /hooks?token=t0ken here'), target)

  expect(reason).toContain('no route for https://shop.example/hooks?… here')
  expect(reason).not.toContain('t0ken')
})

import { expect, it } from 'vitest'
import { verify } from '../../src/protocol/signature.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'

const idsOf = (body: string) => [JSON.parse(body)].flat().map(({ messageId }) => messageId)

it('gives a message without an id a new one, so that two requests are no copies', () => {
  const [one, other] = [signedRequest(fixtures.track, 'secret'), signedRequest(fixtures.track, 'secret')]
  expect(one.headers['x-signature']).not.toBe(other.headers['x-signature'])
  expect(verify(one.bytes, one.headers['x-signature'], 'secret')).toBe(true)
  const { messageId, ...others } = JSON.parse(one.body)
  expect([others, messageId]).toEqual([fixtures.track, expect.stringMatching(/^[0-9a-f-]{36}$/)])
})

it('keeps an id that is passed, a request to delete, and a text', () => {
  const fixed = { ...fixtures.track, messageId: 'fixed' }
  const text = JSON.stringify(fixtures.track)
  for (const message of [fixed, fixtures.delete, text]) {
    expect(signedRequest(message, 'secret')).toEqual(signedRequest(message, 'secret'))
  }
  expect(signedRequest(text, 'secret').body).toBe(text)
})

it('gives each message of a batch its own, under the signature of all', () => {
  const messages = [fixtures.track, { ...fixtures.page, messageId: 'fixed' }, fixtures.track]
  const { body, bytes, headers } = signedRequest(messages, 'secret')
  expect([new Set(idsOf(body)).size, idsOf(body)[1]]).toEqual([3, 'fixed'])
  expect(verify(bytes, headers['x-signature'], 'secret')).toBe(true)
})

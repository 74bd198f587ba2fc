import { expect, it, vi } from 'vitest'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { secretsOf } from '../../src/receiver/secrets.ts'

const request = { path: '/webhooks/shop', headers: { 'x-shop': 'a' } }

it.each([
  ['one', 'a secret', ['a secret']],
  ['several, in their order', ['new', 'old'], ['new', 'old']],
  ['a provider', async () => ['new', 'old'], ['new', 'old']],
  ['a provider without one', () => undefined, []],
])('%s', async (_name, secret, expected) => {
  expect(await secretsOf(createReceiver({ secret }), request)).toEqual(expected)
})

it('those of the source that the request names', async () => {
  const source = vi.fn(({ path }: { readonly path: string }) => path.split('/')[2])
  const secrets = vi.fn(async (name: string) => (name === 'shop' ? 'of the shop' : undefined))
  const receiver = createReceiver({ secret: { source, secrets } })
  expect(await secretsOf(receiver, request)).toEqual(['of the shop'])
  expect(source).toHaveBeenCalledWith(request)
  expect(await secretsOf(receiver, { ...request, path: '/webhooks/app' })).toEqual([])
  expect(secrets.mock.calls).toEqual([['shop'], ['app']])
})

it.each([
  ['no name', undefined],
  ['an empty name', ''],
  ['a name that is too long', 'a'.repeat(201)],
])('%s is no source', async (_name, name) => {
  const secrets = vi.fn(() => 'a secret')
  const receiver = createReceiver({ secret: { source: () => name, secrets } })
  expect(await secretsOf(receiver, request)).toEqual([])
  expect(secrets).not.toHaveBeenCalled()
})

it('rejects when a provider does', async () => {
  const receiver = createReceiver({ secret: () => Promise.reject(new Error('away')) })
  await expect(secretsOf(receiver, request)).rejects.toThrow('away')
})

it('of unsigned messages, and of a receiver that is not ours: none', async () => {
  const receiver = createReceiver({ allowUnsigned: true })
  expect(await secretsOf(receiver, request)).toEqual([])
  expect(await secretsOf({ ...receiver }, request)).toEqual([])
})

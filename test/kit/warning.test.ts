import { afterEach, expect, it, vi } from 'vitest'
import { createWarning } from '../../src/kit/warning.ts'

const emit = vi.spyOn(process, 'emitWarning').mockReturnValue()
const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
afterEach(() => emit.mockClear())

const details = () => emit.mock.calls.map(([, options]) => (options as { detail: string }).detail)

it('is emitted five times in a minute at most: strangers can make a callback fail', () => {
  const warn = createWarning('onError', 'HOOKLINE_ON_ERROR')
  for (let index = 1; index <= 500; index++) warn(new Error(`${index}`))
  expect(details()).toEqual(['1', '2', '3', '4', '5'])
  expect(emit).toHaveBeenCalledWith('onError failed', { code: 'HOOKLINE_ON_ERROR', detail: '1' })
  now.mockReturnValue(60_999)
  warn(new Error('too early'))
  now.mockReturnValue(61_000)
  warn(new Error('again'))
  expect(details()).toEqual(['1', '2', '3', '4', '5', 'again'])
})

const hostile = new Proxy(new Error('p'), {
  get() {
    throw new Error('trap')
  },
})

it.each([
  [
    'one line without control characters',
    new Error('a\u001b[31m\nhookline: forged'),
    'a\\u{1b}[31m\\u{a}hookline: forged',
  ],
  ['at most 500 characters', new Error('x'.repeat(1_000_000)), 'x'.repeat(500)],
  ['nothing of what is no error', { secret: 's' }, 'a thrown object'],
  ['nothing of an error that cannot be read', hostile, 'a value that cannot be shown'],
])('shows %s', (_what, failure, detail) => {
  createWarning('onError', 'HOOKLINE_ON_ERROR')(failure)
  expect(details()).toEqual([detail])
})

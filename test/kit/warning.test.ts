import { expect, it, onTestFinished, vi } from 'vitest'
import { createWarning } from '../../src/kit/warning.ts'
import { watchWarnings } from '../support/receive.ts'
import { throwing } from '../support/throwing.ts'

const detailsOf = ({ mock }: ReturnType<typeof watchWarnings>) => mock.calls.map(([, how]) => Object(how).detail)

it('is emitted five times in a minute at most: strangers can make a callback fail', () => {
  const emit = watchWarnings()
  const now = vi.spyOn(performance, 'now').mockReturnValue(1_000)
  onTestFinished(() => now.mockRestore())
  const warn = createWarning('onError', 'HOOKLINE_ON_ERROR')
  for (let index = 1; index <= 500; index++) warn(new Error(`${index}`))
  expect(detailsOf(emit)).toEqual(['1', '2', '3', '4', '5'])
  expect(emit).toHaveBeenCalledWith('onError failed', { code: 'HOOKLINE_ON_ERROR', detail: '1' })
  now.mockReturnValue(60_999)
  warn(new Error('too early'))
  now.mockReturnValue(61_000)
  warn(new Error('again'))
  expect(detailsOf(emit)).toEqual(['1', '2', '3', '4', '5', 'again'])
})

const hostile = new Proxy(new Error('p'), { get: throwing('trap') })

it.each([
  ['one line without control characters', new Error('a\u001b[31m\nforged'), 'a\\u{1b}[31m\\u{a}forged'],
  ['at most 500 characters', new Error('x'.repeat(1_000_000)), 'x'.repeat(500)],
  ['nothing of what is no error', { secret: 's' }, 'a thrown object'],
  ['nothing of an error that cannot be read', hostile, 'a value that cannot be shown'],
])('shows %s', (_what, failure, detail) => {
  const emit = watchWarnings()
  createWarning('onError', 'HOOKLINE_ON_ERROR')(failure)
  expect(detailsOf(emit)).toEqual([detail])
})

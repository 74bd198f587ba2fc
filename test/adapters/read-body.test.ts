import { once } from 'node:events'
import { Readable } from 'node:stream'
import { expect, it } from 'vitest'
import { NodeRequest, readArrived } from '../../adapters/shared/node-request.ts'

const streamOfText = (text: string): Readable => {
  const stream = new Readable({ read() {} })
  for (const letter of text) stream.push(letter)
  return stream
}

it('a body that has arrived is read at once, and the stream ends', async () => {
  const stream = streamOfText('body')
  stream.push(null)
  const body = readArrived(stream, 4, '4')
  expect(body).toEqual({ bytes: Buffer.from('body'), source: 'stream' })
  await once(stream, 'end')
})

it.each([
  ['in part', 4, '5', () => streamOfText('body')],
  ['without a length', 4, undefined, () => streamOfText('body')],
  ['with more than its length', 4, '3', () => streamOfText('body')],
  ['over the limit', 3, '4', () => streamOfText('body')],
  ['as text', 4, '4', () => streamOfText('body').setEncoding('latin1')],
  ['in a stream that flows', 4, '4', () => streamOfText('body').resume()],
  ['empty', 4, '0', () => streamOfText('')],
])('a body is left alone %s', (_how, limit, length, open) => {
  const stream = open()
  const before = stream.readableLength
  expect(readArrived(stream, limit, length)).toBeUndefined()
  expect(stream.readableLength).toBe(before)
  expect(stream.readableDidRead).toBe(false)
})

it.each([
  ['/webhooks?a=?b', '/webhooks', 'a=?b'],
  ['HTTP://hookline.example?a=/b', '/', 'a=/b'],
])('the request target %s has the path %s and the query %s', (target, path, query) => {
  expect(new NodeRequest({ headers: {} } as never, {} as never, target, {})).toMatchObject({ path, query })
})

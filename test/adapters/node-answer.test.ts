import { EventEmitter } from 'node:events'
import { expect, it } from 'vitest'
import { type NodeOutgoing, toNodeBody } from '../../adapters/shared/node-answer.ts'

it('streams past empty chunks, also to a reader that waits for data', async () => {
  const body = async function* () {
    yield* ['one', '', 'two', '']
  }
  const stream = toNodeBody(body(), new EventEmitter() as NodeOutgoing) as AsyncIterable<Buffer>
  const chunks: string[] = []
  for await (const chunk of stream) chunks.push(String(chunk))
  expect(chunks).toEqual(['one', 'two'])
})

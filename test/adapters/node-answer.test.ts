import { EventEmitter, once } from 'node:events'
import { get } from 'node:http'
import type { AddressInfo } from 'node:net'
import Koa from 'koa'
import { expect, it } from 'vitest'
import { serve } from '../../adapters/koa.ts'
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

it('is no error of a Koa app when the client leaves a streamed answer', async () => {
  const left = Promise.withResolvers<void>()
  async function* body() {
    try {
      yield 'first'
      await new Promise(() => {})
    } finally {
      left.resolve()
    }
  }
  const errors: unknown[] = []
  const app = new Koa().on('error', (error) => errors.push(error))
  app.use(
    serve({
      async handle({ signal }) {
        signal.addEventListener('abort', () => left.resolve())
        return { status: 200, headers: {}, body: body() }
      },
    }),
  )
  const server = app.listen(0)
  const request = get({ port: (server.address() as AddressInfo).port })
  const [response] = await once(request, 'response')
  await once(response, 'data')
  response.on('error', () => {})
  request.destroy()
  await left.promise
  server.close()
  await once(server, 'close')
  expect(errors).toEqual([])
})

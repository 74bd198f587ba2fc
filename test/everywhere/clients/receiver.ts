/** A receiver that is written without this library, from the specification alone. */

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hmac } from '../../support/hmac.ts'

export interface Post {
  readonly path: string
  readonly body: string
  readonly isSigned: boolean
  readonly status: number
}

export async function startReceiver(secret: string) {
  const posts: Post[] = []
  const receiver = { posts, status: 503, url: '', close }
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const bytes = Buffer.concat(chunks)
    const isSigned = request.headers['x-signature'] === hmac(bytes, secret)
    posts.push({ path: request.url ?? '', body: bytes.toString(), isSigned, status: receiver.status })
    response.writeHead(receiver.status).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  receiver.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return receiver

  function close(): void {
    server.close()
    server.closeAllConnections()
  }
}

/** An endpoint on node:http, without this package: right, or with one fault. */

import { createHmac } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'

export function createEndpoint(secret: string, fault: string): Server {
  let count = 0

  function isAuthentic(body: Buffer, given: unknown): boolean {
    const digest = createHmac('sha1', fault === 'quoted-secret' ? `"${secret}"` : secret)
    if (fault === 'stringify') digest.update(JSON.stringify(JSON.parse(String(body))))
    else if (fault === 'escapes') digest.update(withEscapes(JSON.stringify(JSON.parse(String(body)))))
    else digest.update(fault === 'text' ? body.toString().normalize() : body)
    return given === digest.digest('hex')
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const { headers, rawHeaders, socket } = request
    if (fault === 'limits' && ++count > 30) return response.writeHead(429).end()
    if (fault === 'asks-for-login') return response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
    if (fault === 'hangs-at-third' && ++count > 3) return undefined
    let given = headers[fault === 'other-header' ? 'x-hub-signature' : 'x-signature']
    if (fault === 'header-case') given = rawHeaders[rawHeaders.indexOf('X-Signature') + 1 || rawHeaders.length]
    const chunks: Buffer[] = []
    for await (const chunk of request) {
      chunks.push(chunk)
      if (fault === 'first-chunk') break
    }
    const body = Buffer.concat(chunks)
    if (!isAuthentic(body, given)) {
      const right = createHmac('sha1', secret).update(body).digest('hex')
      return response.writeHead(401).end(fault === 'reveals' ? `expected ${right}` : '')
    }
    if (fault === 'dies' && String(body) === 'null') return server.close().closeAllConnections()
    if (fault === 'no-track' && body.includes('"type":"track"')) return response.writeHead(422).end()
    if (fault === 'unknown-user') return response.writeHead(404).end()
    if (fault === 'resets' && body.includes('"type":"group"')) return socket.resetAndDestroy()
    if (fault === 'half' && body.includes('"type":"page"'))
      return response.writeHead(200, { 'content-length': 9 }).write('1')
    if (fault === 'busy') {
      if (count > 0) return response.writeHead(503).end()
      count += 1
      await new Promise((resolve) => setTimeout(resolve, 10))
      count -= 1
    }
    return response.writeHead(isJson(body) ? 200 : 400).end()
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(() => response.headersSent || response.writeHead(500).end())
  })
  return server
}

const withEscapes = (json: string) => json.replaceAll('/', '\\/').replaceAll('<', '\\u003c')

function isJson(body: Buffer): boolean {
  try {
    JSON.parse(String(body))
    return true
  } catch {
    return false
  }
}

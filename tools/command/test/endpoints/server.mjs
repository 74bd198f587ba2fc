/** An endpoint on node:http, without this package: right, or with the one fault that FAULT names. Prints its port. */

import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'

const { SECRET = '', FAULT } = process.env
let count = 0

function signedBytes(body) {
  if (FAULT === 'stringify') return JSON.stringify(JSON.parse(body))
  if (FAULT === 'text') return body.toString().normalize()
  return body
}

function isAuthentic(body, given) {
  const digest = createHmac('sha1', FAULT === 'quoted-secret' ? `"${SECRET}"` : SECRET).update(signedBytes(body))
  return given === digest.digest('hex')
}

async function answer(request, response) {
  if (FAULT === 'limits' && ++count > 30) return response.writeHead(429).end()
  if (FAULT === 'asks-for-login') return response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end()
  if (FAULT === 'other-header') request.headers['x-signature'] = request.headers['x-hub-signature']
  if (FAULT === 'hangs-at-third' && ++count > 3) return
  if (FAULT === 'header-case') {
    const at = request.rawHeaders.indexOf('X-Signature')
    request.headers['x-signature'] = at === -1 ? undefined : request.rawHeaders[at + 1]
  }
  const chunks = []
  for await (const chunk of request) {
    chunks.push(chunk)
    if (FAULT === 'first-chunk') break
  }
  const body = Buffer.concat(chunks)
  if (!isAuthentic(body, request.headers['x-signature'])) {
    const right = createHmac('sha1', SECRET).update(body).digest('hex')
    return response.writeHead(401).end(FAULT === 'reveals' ? `expected ${right}` : '')
  }
  if (FAULT === 'dies' && String(body) === 'null') process.exit(1)
  if (FAULT === 'unknown-user') return response.writeHead(404).end()
  if (FAULT === 'resets' && body.includes('"type":"group"')) return request.socket.resetAndDestroy()
  if (FAULT === 'half' && body.includes('"type":"page"'))
    return response.writeHead(200, { 'content-length': 9 }).write('1')
  if (FAULT === 'busy' && ++count > 1) {
    count -= 1
    return response.writeHead(503).end()
  }
  if (FAULT === 'busy') await new Promise((resolve) => setTimeout(resolve, 10))
  count -= FAULT === 'busy'
  try {
    JSON.parse(body)
  } catch {
    return response.writeHead(400).end()
  }
  response.writeHead(200).end('ok')
}

const server = createServer((request, response) => {
  answer(request, response).catch(() => {
    if (!response.headersSent) response.writeHead(500).end()
  })
})
server.listen(0, '127.0.0.1', () => console.log(server.address().port))

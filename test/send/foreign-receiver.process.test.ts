/** Receivers written without this library verify what the sender sends, over the raw bytes. */

import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { createSender } from '../../src/send/create-sender.ts'
import { fixtures, startEndpoint } from '../../src/testing.ts'
import { needs } from '../support/needs.ts'

const sharedSecret = 'pässword ☃ with everything'
const messages = [
  ...Object.values(fixtures),
  {
    ...fixtures.identify,
    traits: { text: 'ünïcödé ☃ 🎉 \u2028 </script> "quotes" \\', zero: -0, big: 1e21, tiny: 39.0 },
  },
  { ...fixtures.track, properties: { text: 'x'.repeat(100_000) } },
]

const PYTHON = `
import hashlib, hmac, http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        digest = hmac.new(sys.argv[1].encode("utf-8"), body, hashlib.sha1).hexdigest()
        same = hmac.compare_digest(digest, self.headers.get("X-Signature", ""))
        self.send_response(200 if same else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
`

test('a receiver in Python takes every message, and refuses a tampered one', needs('python3'), async () => {
  const child = spawn('python3', ['-c', PYTHON, sharedSecret], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  const [port] = await once(child.stdout, 'data')
  const sender = createSender({ webhooks: [{ url: `http://127.0.0.1:${String(port).trim()}/` }], sharedSecret })
  onTestFinished(() => sender.close())

  for (const message of messages) {
    expect(await sender.send(message)).toMatchObject({ ok: true, attempts: [{ status: 200 }] })
    expect(await sender.send(message, { tamper: 'wrong-secret' })).toMatchObject({ attempts: [{ status: 401 }] })
    expect(await sender.send(message, { tamper: 'reserialised' })).toMatchObject({ attempts: [{ status: 401 }] })
  }
})

test('openssl computes the same signature over the bytes that arrived', needs('openssl'), async () => {
  const endpoint = await startEndpoint()
  const directory = mkdtempSync(join(tmpdir(), 'bytes-'))
  onTestFinished(async () => {
    rmSync(directory, { recursive: true, maxRetries: 9 })
    await endpoint.close()
  })
  const sender = createSender({ webhooks: [{ url: endpoint.url }], sharedSecret })
  for (const message of messages) await sender.send(message)
  await sender.close()

  const key = Buffer.from(sharedSecret).toString('hex')
  for (const [index, { bytes, headers }] of endpoint.requests.entries()) {
    const file = join(directory, `${index}`)
    writeFileSync(file, bytes)
    const args = ['dgst', '-sha1', '-mac', 'HMAC', '-macopt', `hexkey:${key}`, '-r', file]
    expect(spawnSync('openssl', args, { encoding: 'utf8' }).stdout.slice(0, 40)).toBe(headers['x-signature'])
  }
  expect(endpoint.requests).toHaveLength(messages.length)
})

/** A receiver written without this library verifies what the sender sends, over the raw bytes. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { fixtures } from '../../src/testing.ts'
import { needs } from '../support/needs.ts'
import { openSender } from './set-up.ts'

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
  const sender = openSender({ webhooks: [{ url: `http://127.0.0.1:${String(port).trim()}/` }], sharedSecret })

  for (const message of messages) {
    expect(await sender.send(message)).toMatchObject({ ok: true, attempts: [{ status: 200 }] })
    expect(await sender.send(message, { tamper: 'wrong-secret' })).toMatchObject({ attempts: [{ status: 401 }] })
    expect(await sender.send(message, { tamper: 'reserialised' })).toMatchObject({ attempts: [{ status: 401 }] })
  }
})

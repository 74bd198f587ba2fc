/** The recipe for a graceful stop, as the guide has it, in a process of its own. */

import { mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Agent, type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import { fixtures, signedRequest } from '../../src/testing.ts'
import { extractBlocks } from '../docs/blocks.ts'
import { startNode } from '../docs/child.ts'
import { needs } from '../support/needs.ts'
import { secret } from '../support/receive.ts'

const root = new URL('../../', import.meta.url)
const cache = fileURLToPath(new URL('.cache/', root))
mkdirSync(cache, { recursive: true })
const directory = mkdtempSync(join(cache, 'sigterm-')) // Below package.json, so that its own name leads to what is built.
afterAll(() => rm(directory, { recursive: true, maxRetries: 9 }))

function startRecipe() {
  const guide = readFileSync(new URL('docs/inbox.md', root), 'utf8')
  const recipe = extractBlocks('docs/inbox.md', guide).find(({ code }) => code.includes('await receiver.close('))?.code
  const changes = {
    '.listen(3000)': ".listen(0, '127.0.0.1')",
    "console.log('mail', message)": "setTimeout(200).then(() => console.log('handled', message))",
  }
  const code = Object.entries(changes).reduce((before, [from, to]) => {
    expect(before).toContain(from)
    return before.replace(from, to)
  }, recipe ?? '')
  const path = join(directory, 'recipe.ts')
  writeFileSync(
    path,
    `import { setTimeout } from 'node:timers/promises'
${code}
server.on('listening', () => console.log('port', JSON.stringify(server.address())))
`,
  )
  return startNode([path], { cwd: directory, env: { HOOKLINE_SECRET: secret } })
}

/** Begins a request whose body is not sent yet; `finish` sends it. `arrived` says that the server has its beginning. */
function begin(port: number, message: object, agent?: Agent) {
  const { body, headers } = signedRequest(message, secret)
  const length = Buffer.byteLength(body)
  const options = {
    port,
    path: '/webhooks',
    method: 'POST',
    headers: { ...headers, 'content-length': length, expect: '100-continue' },
  }
  const sent = request({ host: '127.0.0.1', ...options, agent: agent ?? false }) // A new connection each: one that is kept is answered 503.
  const status = new Promise<number | string | undefined>((resolve) => {
    sent.on('response', (response: IncomingMessage) => {
      response.resume()
      response.on('end', () => resolve(response.statusCode))
    })
    sent.on('error', ({ code }: NodeJS.ErrnoException) => resolve(code))
  })
  const arrived = new Promise<void>((resolve) => sent.on('continue', resolve))
  sent.flushHeaders()
  return { status, arrived, finish: () => sent.end(body) }
}

it('answers what is under way, refuses what is new, lets handlers end, and exits with 0', needs('POSIX'), async () => {
  const child = startRecipe()
  const port = Number((await child.printed(/"port":(\d+)/))[1])
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const post = (message: object, through?: Agent) => {
    const { status, finish } = begin(port, message, through)
    finish()
    return status
  }

  expect(await post({ ...fixtures.track, event: 'Stored Before' })).toBe(200)
  const underWay = begin(port, { ...fixtures.track, event: 'Under Way' }, agent)
  const next = post({ ...fixtures.track, event: 'Too Late' }, agent) // On the same connection, once that is answered.
  expect(await post({ ...fixtures.track, event: 'Just Before' })).toBe(200)
  await underWay.arrived
  child.kill('SIGTERM')
  while ((await post(fixtures.page)) !== 'ECONNREFUSED');

  underWay.finish()
  expect(await underWay.status).toBe(200)
  expect([503, 'ECONNRESET', 'ECONNREFUSED']).toContain(await next)
  agent.destroy()
  expect(await child.exit).toBe(0)
  const handled = [...child.stdout.matchAll(/^handled \{[^}]* event: '(.*?)'/gm)].map(([, event]) => event)
  expect(handled.sort()).toEqual(['Just Before', 'Stored Before', 'Under Way'])
})

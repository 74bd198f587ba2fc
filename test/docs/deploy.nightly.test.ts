/** The deployments of docs/deploy.md: the server, its image, its unit, its manifests, and the proxy in front of it. */

import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { sign } from 'hookline'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { createProject, type Project } from '../package/project.ts'
import { needs } from '../support/needs.ts'
import { freePort, isOpen } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { extractBlocks } from './blocks.ts'
import { type Child, startNode, startProgram } from './child.ts'
import { writeNginx } from './configs.ts'
import { buildImage, type Image, readGuide, recordDocker } from './image.ts'

const SECRET = 'the secret of a deployment'
const PORT = 3000
/** The same bytes each time. */
const MESSAGE = signedRequest(fixtures.track, SECRET)

const blocks = extractBlocks('docs/deploy.md', readGuide('deploy.md'))
const codeOf = (name: string) => blocks.find(({ file }) => file === name)?.code ?? ''
const stateFolder = /STATE_DIRECTORY=(\S+)/.exec(codeOf('Dockerfile'))?.[1] ?? ''
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
  test('passes the test that hookline init writes for the receiver in its place', async () => {
    const folder = newFolder()
    symlinkSync(join(project.directory, 'node_modules'), join(folder, 'node_modules'), 'junction')
    const created = startNode([command(), 'init', 'node', '--no-install'], { cwd: folder })
    expect(await created.exit).toBe(0)
    writeFileSync(join(folder, 'webhooks.js'), codeOf('webhooks.js'))

    const env = { SECRET_FILE: undefined, STATE_DIRECTORY: undefined }
    const tested = startNode(['--test', '--test-reporter=tap'], { cwd: folder, env })

    expect([await tested.exit, tested.output]).toEqual([0, expect.stringMatching(/^# pass 2\n# fail 0$/m)])
  })

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

describe('the image', { ...needs('bwrap', 'root'), timeout: 60_000 }, () => {
  let image: Image
  let context: string
  let options: string[]
  let exec: readonly string[]

  beforeAll(() => {
    context = newFolder(atEnd)
    const { directory, files } = project
    expect(files).toContain('package.json')
    for (const name of ['package.json', 'package-lock.json', 'webhooks.js']) {
      writeFileSync(join(context, name), readFileSync(join(directory, name)))
    }
    image = buildImage(codeOf('Dockerfile'), context, [join(directory, tarball(directory))])
    atEnd(() => image.remove())
    const calls = blocks.filter(({ code, language }) => language === 'sh' && /\bdocker /.test(code))
    const recorded = calls.flatMap(({ code }) => recordDocker(code, context, SECRET))
    writeFileSync(join(context, 'secret.txt'), SECRET)
    options = optionsOf(context)
    exec = recorded.find(([, verb]) => verb === 'exec')?.slice(3) ?? []
  }, 240_000)

  test('runs on a read-only root, writes only to its volume, and keeps that', async () => {
    expect(options).toContain('--read-only')
    const port = await freePort()
    const first = image.start([...options, '--env', `PORT=${port}`])
    onTestFinished(first.end)
    await first.printed(/listening/)
    expect(await get(port, '/readyz')).toEqual([200, 'ok\n'])
    expect(await post(port)).toEqual([200, '{"ok":true}'])
    await first.printed(/event: 'Order Completed'/)
    expect(first.exec(exec)).toMatch(/^webhooks /m)

    first.kill('SIGTERM')
    expect(await first.exit).toBe(0)

    const second = image.start([...options, '--env', `PORT=${port}`])
    onTestFinished(second.end)
    await second.printed(/listening/)
    expect(await post(port)).toEqual([200, '{"ok":true,"duplicate":true}'])
    second.kill('SIGINT')
    expect(await second.exit).toBe(0)
  })

  test('cannot write elsewhere', async () => {
    const container = image.start([...options, '--env', 'STATE_DIRECTORY=/app', '--env', 'PORT=0'])
    expect(await container.exit).toBe(1)
    expect(container.output).toMatch(/cannot use \/app\/inbox\.sqlite: .*unable to open/)
  })

  test('listens on the port that it exposes and publishes', () => {
    expect(image.exposed).toBe(PORT)
    expect(compose('services.receiver.ports')).toEqual([`127.0.0.1:${PORT}:${PORT}`])
    expect(codeOf('webhooks.js')).toContain(`PORT = '${PORT}'`)
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
  ])('%s: %s is that of the server', (file, path, expected) => {
    expect(valueAt(file, path)).toEqual(expected)
  })

  test('mount the folder of the SQLite file, and that of the secret', () => {
    const folders = valuesByName('statefulset.yaml', `${CONTAINER}.volumeMounts`, 'mountPath')
    const env = valuesByName('statefulset.yaml', `${CONTAINER}.env`, 'value')

    expect(folders.data).toBe(stateFolder)
    expect(env.SECRET_FILE).toBe(`${folders.secret}/secret`)
  })

  test('Compose asks whether the server is ready', async () => {
    const server = await start()
    const [, , , script = ''] = compose('services.receiver.healthcheck.test') as string[]

    expect(runHealthcheck(script, server.port)).toBe(0)
    expect(runHealthcheck(script, await freePort())).toBe(1)
  })

  test('wait longer for its end than the server does', () => {
    const unit = codeOf('receiver.service')
    const waits = [
      Number.parseInt(compose('services.receiver.stop_grace_period') as string, 10),
      Number(/TimeoutStopSec=(\d+)/.exec(unit)?.[1]),
      ...[/kill_timeout = (\d+)/, /maxShutdownDelaySeconds: (\d+)/].map((pattern) =>
        Number(pattern.exec(readGuide('deploy.md'))?.[1]),
      ),
      valueAt('statefulset.yaml', `${POD}.terminationGracePeriodSeconds`),
    ]

    expect(unit).toMatch(/^ExecStart=\S+node \S+\/webhooks\.js$/m)
    // Its queue may need a second more.
    expect(waits.filter((seconds) => !(Number(seconds) * 1_000 > graceMs + 1_000))).toEqual([])
  })
})

describe('the unit', () => {
  const unit = codeOf('receiver.service')

  test('has the exposure that the page names', needs('systemd-analyze'), () => {
    const path = join(newFolder(), 'receiver.service')
    writeFileSync(path, unit)
    const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=true', path], { encoding: 'utf8' })

    const [, exposure] = /exposure level for receiver\.service: ([\d.]+)/.exec(stdout) ?? []
    expect(/rates the unit ([\d.]+) of 10/.exec(readGuide('deploy.md'))?.[1]).toBe(exposure)
  })

  test('lets the server make every system call that it makes', {
    ...needs('strace', 'systemd-analyze'),
    timeout: 120_000,
  }, async () => {
    const trace = join(newFolder(), 'trace')
    const server = await start({}, ['strace', '-f', '-qq', '-o', trace])
    expect((await post(server.port))[0]).toBe(200)
    await server.child.printed(/^track /m)
    process.kill(Number(/^\d+/.exec(readFileSync(trace, 'utf8'))?.[0]), 'SIGTERM') // Not strace, but what it runs.
    await server.child.exit

    const lines = readFileSync(trace, 'utf8').split('\n')
    const used = new Set(lines.flatMap((line) => /^\d+ +(\w+)\(/.exec(line)?.[1] ?? []))
    const families = new Set(lines.flatMap((line) => /\bsocket\((AF_\w+)/.exec(line)?.[1] ?? []))
    const filters = [...unit.matchAll(/^SystemCallFilter=(.*)$/gm)].map(([, groups = '']) => groups)
    expect(filters).toEqual(['@system-service'])
    const allowed = expand('@system-service')

    expect(used.size).toBeGreaterThan(40)
    expect([...used].filter((name) => !allowed.has(name))).toEqual([])
    const admitted = /^RestrictAddressFamilies=(.*)$/m.exec(unit)?.[1]?.split(' ') ?? []
    expect([...families].filter((family) => !admitted.includes(family))).toEqual([])
  })
})

/** From the first message to the end of the receiver. */
describe('nginx', { ...needs('nginx'), timeout: 120_000, shuffle: false }, () => {
  let server: Server
  let proxy: { readonly port: number; readonly ca: string; readonly folder: string }
  const relay = { connections: 0, received: '' }

  beforeAll(async () => {
    server = await start({}, [], atEnd)
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
    const child = startProgram('nginx', writeNginx(folder, codeOf('receiver.conf'), { 443: port, [PORT]: upstream }))
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
  under: readonly string[] = [],
  register: Register = onTestFinished,
): Promise<Server> {
  const server = await launch(env, under, register)
  await server.child.printed(/listening/)
  return server
}

async function launch(
  env: Readonly<Record<string, string | undefined>> = {},
  [program, ...args]: readonly string[] = [],
  register: Register = onTestFinished,
): Promise<Server> {
  const port = await freePort()
  const { STATE_DIRECTORY = newFolder(register) } = env
  const all = { HOOKLINE_SECRET: SECRET, SECRET_FILE: undefined, PORT: `${port}`, ...env, STATE_DIRECTORY }
  const options = { cwd: project.directory, env: all }
  const child =
    program === undefined
      ? startNode(['webhooks.js'], options)
      : startProgram(program, [...args, process.execPath, 'webhooks.js'], options)
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

function command(): string {
  return join(project.directory, 'node_modules/hookline/dist/cli.js')
}

async function check(url: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  const child = startNode([command(), 'check', url], { env: { HOOKLINE_SECRET: SECRET, ...env } })
  await child.exit
  return child.output
}

function runHealthcheck(script: string, port: number): number | null {
  return spawnSync(process.execPath, ['-e', script.replace(`:${PORT}/`, `:${port}/`)]).status
}

/** The options of `docker run` that do what the file of Compose says. */
function optionsOf(context: string): string[] {
  const service = compose('services.receiver') as {
    readonly read_only: boolean
    readonly environment: Readonly<Record<string, string>>
  } & Readonly<Record<'tmpfs' | 'cap_drop' | 'volumes' | 'secrets', readonly string[]>>
  const secrets = service.secrets.map((name) => {
    return `${join(context, compose(`secrets.${name}.file`) as string)}:/run/secrets/${name}:ro`
  })
  const each = (option: string, values: readonly string[]) => values.flatMap((value) => [option, value])
  return [
    ...(service.read_only ? ['--read-only'] : []),
    ...each('--tmpfs', service.tmpfs),
    ...each('--cap-drop', service.cap_drop),
    ...each('--volume', [...service.volumes, ...secrets]),
    ...each(
      '--env',
      Object.entries(service.environment).map((pair) => pair.join('=')),
    ),
  ]
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

function tarball(directory: string): string {
  const { dependencies } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'))
  return dependencies.hookline.replace('file:', '')
}

/** The system calls of a group, and of the groups in it. */
function expand(group: string): Set<string> {
  const names = execFileSync('systemd-analyze', ['syscall-filter', group], { encoding: 'utf8' })
    .split('\n')
    .slice(1)
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
  return new Set(names.flatMap((name) => (name.startsWith('@') ? [...expand(name)] : [name])))
}

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fixtures, signedRequest } from 'hookline/testing'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { extractBlocks } from '../docs/blocks.ts'
import { startProgram } from '../docs/child.ts'
import { needs } from '../support/needs.ts'
import { freePort } from '../support/redis.ts'
import { createProject, type Project } from './project.ts'
import { runProgram } from './run.ts'

const SUBPATHS: Readonly<Record<string, readonly string[]>> = {
  hookline: ['HooklineError', 'MESSAGE_TYPES', 'createReceiver', 'parse', 'sign', 'verify'],
  'hookline/express': ['serve'],
  'hookline/koa': ['serve'],
  'hookline/fastify': ['serve'],
  'hookline/node': ['serve'],
  'hookline/fetch': ['serve'],
  'hookline/lambda': ['serve'],
  'hookline/sender': ['createDestination', 'createSender'],
  'hookline/collector': ['createCollector'],
  'hookline/client': ['BatchError', 'createClient'],
  'hookline/queues': ['createQueue', 'inspectQueue', 'servesOther'],
  'hookline/queues/memory': ['memoryQueue'],
  'hookline/queues/sqlite': ['listQueues', 'sqliteQueue'],
  'hookline/queues/bullmq': ['bullmqQueue', 'listQueues'],
  'hookline/queues/pg-boss': ['listQueues', 'pgBossQueue'],
  'hookline/dedupe/memory': ['memoryDedupe'],
  'hookline/otel': ['observe'],
  'hookline/testing': [
    'capture',
    'explainSignature',
    'fixtures',
    'manualClock',
    'signedRequest',
    'startEndpoint',
    'startPlatform',
    'testQueue',
  ],
  'hookline/inspector': ['createInspector'],
}

const PEERS = (['@opentelemetry/api', 'bullmq', 'ioredis', 'pg-boss'] as const).map(
  (name) => `${name}@${manifest.devDependencies[name]}`,
)

const DEPLOY = new URL('../../docs/deploy.md', import.meta.url)

/**
 * Declares the tests.
 *
 * @param version What `node --version` must begin with.
 * @param findNode Gives the path of that Node.
 */
export function testPackage(version: string, findNode: () => Promise<string>): void {
  describe(`the packed tarball on Node ${version}`, () => {
    let node: string
    let project: Project
    beforeAll(async () => {
      node = await findNode()
      project = await createProject(PEERS)
    }, 120_000)
    afterAll(() => project?.remove())

    it('runs on the Node it says', async () => {
      const { stdout } = await runProgram(node, ['--version'], project.directory)
      expect(stdout).toMatch(new RegExp(`^v${version}\\.`))
    })

    it('holds what is built and what the README links to, and no sources', () => {
      const others = project.files.filter((path) => !/^(dist|docs|examples)\//.test(path)).sort()
      const pages = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md']
      expect(others).toEqual([...pages, 'compose.yaml', 'package.json', 'skills/hookline/SKILL.md'])
      expect(project.files.filter((path) => path.startsWith('dist/'))).toEqual(
        expect.arrayContaining(['dist/index.js', 'dist/index.d.ts']),
      )
    })

    it('has every subpath of package.json tested here', () => {
      const keys = Object.keys(manifest.exports).filter((key) => key !== './package.json')
      expect(keys.map((key) => key.replace('.', 'hookline'))).toEqual(Object.keys(SUBPATHS))
    })

    it.each(['import.mjs', 'require.cjs'])('%s: each subpath gives its names, without a warning', async (program) => {
      const { stdout, stderr } = await project.run(node, program, ...Object.keys(SUBPATHS))

      const given: Record<string, string[]> = JSON.parse(stdout)
      expect(Object.fromEntries(Object.entries(given).map(([name, names]) => [name, names.sort()]))).toEqual(SUBPATHS)
      expect(stderr).toBe('')
    })

    it('has a command that says its version, and what is wrong in one line', async () => {
      const bin = 'node_modules/hookline/dist/cli.js'
      const { stdout } = await runProgram(node, [bin, '--version'], project.directory)
      expect(stdout).toBe(`${manifest.version}\n`)
      const failed = runProgram(node, [bin, 'queue', 'package.json'], project.directory)
      await expect(failed).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: .*\n$/) })
    })

    it('gives its package.json', async () => {
      const { stdout } = await project.run(node, 'require.cjs', 'hookline/package.json')
      expect(JSON.parse(stdout)['hookline/package.json']).toContain('version')
    })

    it.each(['serve.mjs', 'serve.cjs'])('%s: takes an authentic message and refuses a forged one', async (program) => {
      const { stdout } = await project.run(node, program)
      expect(JSON.parse(stdout)).toEqual({
        statuses: [200, 401, 404, 200],
        seen: ['Order Completed', 'Order Completed'],
      })
    })

    it('runs the server of the guide with the permissions that it names', needs('POSIX'), async () => {
      const blocks = extractBlocks('docs/deploy.md', await readFile(DEPLOY, 'utf8'))
      const codeOf = (pattern: RegExp) => blocks.find(({ file, code }) => pattern.test(file ?? code))?.code ?? ''
      await writeFile(join(project.directory, 'webhooks.js'), codeOf(/^webhooks\.js$/))
      await mkdir(join(project.directory, 'data'))
      const net = Number(version) < 25 ? '' : ' --allow-net' // As the guide says.
      const command = codeOf(/--permission/).replace('node --permission', `exec node --permission${net}`)
      const port = await freePort()
      const PATH = [dirname(node), process.env.PATH].join(delimiter)
      const env = { HOOKLINE_SECRET: 'package-test', HOST: '127.0.0.1', PORT: `${port}`, PATH }
      const server = startProgram('sh', ['-c', command], { cwd: project.directory, env })
      onTestFinished(() => server.kill('SIGKILL'))
      await server.printed(/listening/)

      const { status } = await fetch(`http://127.0.0.1:${port}/webhooks`, signedRequest(fixtures.track, 'package-test'))

      expect(status).toBe(200)
      await server.printed(/event: 'Order Completed'/)
      server.kill('SIGTERM')
      expect(await server.exit).toBe(0)
    })

    it('throws one and the same HooklineError from every subpath', async () => {
      const { stdout } = await project.run(node, 'errors.mjs')
      expect(JSON.parse(stdout)).toEqual({
        'hookline/node': 'body_too_large',
        'hookline/express': 'body_too_large',
        'hookline/koa': 'body_too_large',
        'hookline/fastify': 'body_too_large',
        'hookline/fetch': 'body_too_large',
        'hookline/lambda': 'body_too_large',
        require: true,
      })
    })
  })
}

/** The packed tarball on every Node that is supported. */

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { delimiter, dirname, join } from 'node:path'
import { fixtures, signedRequest } from 'hookline/testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { extractBlocks } from '../docs/blocks.ts'
import { startProgram } from '../docs/child.ts'
import { needs } from '../support/needs.ts'
import { freePort } from '../support/redis.ts'
import { installNode } from './node.ts'
import { useProject } from './project.ts'
import { runProgram } from './run.ts'

const SUBPATHS = Object.keys(manifest.exports)
  .filter((key) => key !== './package.json')
  .map((key) => key.replace('.', 'hookline'))

const PEERS = (['@opentelemetry/api', 'bullmq', 'ioredis', 'pg-boss'] as const).map(
  (name) => `${name}@${manifest.devDependencies[name]}`,
)

const DEPLOY = new URL('../../docs/deploy.md', import.meta.url)

describe.each(['22', '24', '26'])('the packed tarball on Node %s', (version) => {
  const project = useProject(PEERS)
  let node: string
  beforeAll(async () => {
    node = await installNode(version)
  })

  it('runs on the Node it says', async () => {
    const { stdout } = await runProgram(node, ['--version'], project().directory)
    expect(stdout).toMatch(new RegExp(`^v${version}\\.`))
  })

  it('holds what is built and what the README links to, and no sources', () => {
    const { files } = project()
    const others = files.filter((path) => !/^(dist|docs|examples)\//.test(path)).sort()
    const pages = ['CHANGELOG.md', 'LICENSE', 'README.md', 'SECURITY.md']
    expect(others).toEqual([...pages, 'compose.yaml', 'package.json', 'skills/hookline/SKILL.md'])
    expect(files).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts']))
  })

  it('gives each subpath the same names by import and by require, without a warning', async () => {
    const imported = await project().run(node, 'import.mjs', ...SUBPATHS)
    const required = await project().run(node, 'require.cjs', ...SUBPATHS)

    const [names, others] = [imported, required].map(({ stdout }) => JSON.parse(stdout))
    expect(names.hookline.join(' ')).toBe('HooklineError MESSAGE_TYPES createReceiver parse sign verify')
    expect(Object.keys(names)).toEqual(SUBPATHS)
    expect(names).toEqual(others)
    expect(imported.stderr + required.stderr).toBe('')
  })

  it('has a command that says its version, and what is wrong in one line', async () => {
    const bin = 'node_modules/hookline/dist/cli.js'
    const { stdout } = await runProgram(node, [bin, '--version'], project().directory)
    expect(stdout).toBe(`${manifest.version}\n`)
    const failed = runProgram(node, [bin, 'queue', 'package.json'], project().directory)
    await expect(failed).rejects.toMatchObject({ code: 2, stderr: expect.stringMatching(/^error: .*\n$/) })
  })

  it.each(['serve.mjs', 'serve.cjs'])('%s: takes an authentic message and refuses a forged one', async (program) => {
    const { stdout } = await project().run(node, program)
    const [event, statuses] = ['Order Completed', [200, 401, 404, 200]]
    expect(JSON.parse(stdout)).toEqual({ statuses, seen: [event, event] })
  })

  it('runs the server of the guide with the permissions that it names', needs('POSIX'), async () => {
    const blocks = extractBlocks('docs/deploy.md', await readFile(DEPLOY, 'utf8'))
    const codeOf = (pattern: RegExp) => blocks.find(({ file, code }) => pattern.test(file ?? code))?.code ?? ''
    await writeFile(join(project().directory, 'webhooks.js'), codeOf(/^webhooks\.js$/))
    await mkdir(join(project().directory, 'data'))
    const net = Number(version) < 25 ? '' : ' --allow-net' // As the guide says.
    const command = codeOf(/--permission/).replace('node --permission', `exec node --permission${net}`)
    const port = await freePort()
    const PATH = [dirname(node), process.env.PATH].join(delimiter)
    const env = { HOOKLINE_SECRET: 'package-test', HOST: '127.0.0.1', PORT: `${port}`, PATH }
    const server = startProgram('sh', ['-c', command], { cwd: project().directory, env })
    onTestFinished(() => server.kill('SIGKILL'))
    await server.printed(/listening/)

    const { status } = await fetch(`http://127.0.0.1:${port}/webhooks`, signedRequest(fixtures.track, 'package-test'))

    expect(status).toBe(200)
    await server.printed(/event: 'Order Completed'/)
    server.kill('SIGTERM')
    expect(await server.exit).toBe(0)
  })

  it('throws one and the same HooklineError from every subpath that reads bodies', async () => {
    const { stdout } = await project().run(node, 'errors.mjs')
    const { require, ...codes } = JSON.parse(stdout)
    expect([require, ...Object.values(codes)]).toEqual([true, ...Array(6).fill('body_too_large')])
  })
})

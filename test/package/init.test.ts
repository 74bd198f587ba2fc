/** `hookline init` of the packed tarball, as a user runs it: packages are installed, `npm test` passes, the server passes each check. */

import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { listen } from '../../src/testing/server.ts'
import { FRAMEWORKS } from '../../tools/command/src/init/templates.ts'
import { uncomment } from '../../tools/command/test/uncomment.ts'
import { until } from '../support/until.ts'
import { useProject } from './project.ts'
import { runProgram } from './run.ts'

describe('an empty project', () => {
  const project = useProject()

  it('gets a receiver that is tested, starts, and passes each check', async () => {
    const { stdout } = await runProgram('npx', ['hookline', 'init', 'express'], project().directory)
    expect(stdout).toMatch(/^wrote webhooks\.js\nwrote webhooks\.test\.mjs\nwrote \.env\.example\n/m)
    const { dependencies } = JSON.parse(await readFile(join(project().directory, 'package.json'), 'utf8'))
    expect(Object.keys(dependencies)).toEqual(['express', 'hookline'])

    const tested = await runProgram('npm', ['test', '--', '--test-reporter=tap'], project().directory)
    expect(tested.stdout).toMatch(/^# pass 2\n# fail 0$/m)

    const { origin, close } = await listen(createServer(), 0)
    await close()
    const example = await readFile(join(project().directory, '.env.example'), 'utf8')
    const env = example.replace('HOOKLINE_SECRET=', '$&secret').replace('3000', new URL(origin).port)
    await writeFile(join(project().directory, '.env'), env)
    const parameters = ['--env-file=.env', 'webhooks.js']
    const server = spawn(process.execPath, parameters, { cwd: project().directory, stdio: 'ignore' })
    onTestFinished(() => void server.kill())
    await until(() => fetch(origin).then(Boolean, () => false))
    await runProgram('npx', ['hookline', 'check', `${origin}/webhooks`, '--secret', 'secret'], project().directory)
  })
})

describe('a project of TypeScript', () => {
  const { express, fastify, hono, koa, vitest } = manifest.devDependencies
  const project = useProject([
    ...[`express@${express}`, `fastify@${fastify}`, `hono@${hono}`, `koa@${koa}`, `vitest@${vitest}`],
    ...['@types/express', '@types/koa', '@types/node@24'],
  ])

  it.each([
    ['nodenext', { module: ts.ModuleKind.NodeNext }],
    ['bundler', { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }],
  ])('compiles the receiver and the test of each framework (%s)', async (kind, settings) => {
    const files: string[] = []
    for (const name of Object.keys(FRAMEWORKS)) {
      const folder = join(project().directory, kind, name)
      await mkdir(folder, { recursive: true })
      await writeFile(join(folder, 'package.json'), '{ "type": "module", "devDependencies": { "vitest": "*" } }')
      await writeFile(join(folder, 'tsconfig.json'), '{}')
      const program = join(project().directory, 'node_modules/hookline/dist/cli.js')
      await runProgram(process.execPath, [program, 'init', name, '--no-install'], folder)
      const written = await readdir(folder, { recursive: true })
      const paths = written.filter((path) => path.endsWith('.ts')).map((path) => join(folder, path))
      const [receiver = ''] = paths.filter((path) => !path.endsWith('.test.ts'))
      const whole = receiver.replace(/\.ts$/, '-uncommented.ts')
      await writeFile(whole, uncomment(await readFile(receiver, 'utf8')))
      files.push(...paths, whole)
    }
    expect(files).toHaveLength(3 * Object.keys(FRAMEWORKS).length)
    const options: ts.CompilerOptions = {
      ...settings,
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      target: ts.ScriptTarget.ES2023,
      types: ['node'],
      typeRoots: [join(project().directory, 'node_modules/@types')],
    }
    const found = ts.getPreEmitDiagnostics(ts.createProgram(files, options))
    expect(ts.formatDiagnostics(found, ts.createCompilerHost(options))).toBe('')
  })
})

/** A project with the packed tarball, beside the packages of this repository: what a user has after `npm install hookline`. */

import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { TestProject } from 'vitest/node'
import { runProgram } from '../../../../test/package/run.ts'

declare module 'vitest' {
  interface ProvidedContext {
    readonly directory: string
  }
}

const root = fileURLToPath(new URL('../../../..', import.meta.url))

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await mkdir(join(root, '.cache'), { recursive: true })
  const directory = await mkdtemp(join(root, '.cache/browser-'))
  const { stdout } = await runProgram('npm', ['pack', '--json', '--pack-destination', directory], root)
  const [{ filename }] = JSON.parse(stdout)
  const modules = join(directory, 'node_modules/hookline')
  await mkdir(modules, { recursive: true })
  await runProgram('tar', ['-xzf', filename, '-C', modules, '--strip-components=1'], directory)
  await writeFile(join(directory, 'package.json'), '{ "private": true, "type": "module" }')
  await cp(join(root, 'tools/inspector/test/browser/programs'), directory, { recursive: true })
  project.provide('directory', directory)
  return () => rm(directory, { recursive: true, force: true })
}

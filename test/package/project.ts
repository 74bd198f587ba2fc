/** An empty project with the packed tarball installed: what a user has after `npm install hookline`. */

import { copyFile, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'
import { type Ran, runProgram } from './run.ts'

export interface Project {
  readonly directory: string
  /** The files of the tarball, by path. */
  readonly files: readonly string[]
  run(node: string, program: string, ...parameters: string[]): Promise<Ran>
  remove(): Promise<void>
}

/** One for the tests of a suite. */
export function useProject(packages: readonly string[] = []): () => Project {
  let project: Project
  beforeAll(async () => {
    project = await createProject(packages)
  })
  afterAll(() => project?.remove())
  return () => project
}

/** Packs what is built, and installs that. Packages are what else to install, as npm takes it. */
export async function createProject(packages: readonly string[] = []): Promise<Project> {
  const directory = await mkdtemp(join(tmpdir(), 'hookline-'))
  const packed = await pack(directory)
  await writeFile(join(directory, 'package.json'), '{ "private": true }')
  await copyFile(join(root, '.npmrc'), join(directory, '.npmrc')) // The newest release of a package may lack its binary yet.
  await runProgram('npm', ['install', '--no-audit', '--no-fund', `./${packed.filename}`, ...packages], directory)
  await cp(join(root, 'test/package/programs'), directory, { recursive: true })
  return {
    directory,
    files: packed.files.map(({ path }) => path),
    run: (node, program, ...parameters) => runProgram(node, [program, ...parameters], directory),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

/** Packs what is built. */
export async function pack(directory: string): Promise<{ filename: string; files: { path: string }[] }> {
  const { stdout } = await runProgram('npm', ['pack', '--json', '--pack-destination', directory], root)
  return JSON.parse(stdout)[0]
}

const root = fileURLToPath(new URL('../..', import.meta.url))

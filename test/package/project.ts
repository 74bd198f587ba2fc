/** An empty project with the packed tarball installed: what a user has after `npm install hookline`. */

import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Ran, run } from './run.ts'

export interface Project {
  readonly directory: string
  /** The files of the tarball, by path. */
  readonly files: readonly string[]
  run(node: string, program: string, ...parameters: string[]): Promise<Ran>
  remove(): Promise<void>
}

/**
 * Packs what is built, and installs that.
 *
 * @param packages What else to install, as npm takes it.
 */
export async function createProject(packages: readonly string[] = []): Promise<Project> {
  const directory = await mkdtemp(join(tmpdir(), 'hookline-'))
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', directory], root)
  const [packed] = JSON.parse(stdout)
  await writeFile(join(directory, 'package.json'), '{ "private": true }')
  await run('npm', ['install', '--no-audit', '--no-fund', `./${packed.filename}`, ...packages], directory)
  await cp(join(root, 'test/package/programs'), directory, { recursive: true })
  return {
    directory,
    files: packed.files.map((file: { readonly path: string }) => file.path),
    run: (node, program, ...parameters) => run(node, [program, ...parameters], directory),
    remove: () => rm(directory, { recursive: true, force: true }),
  }
}

const root = fileURLToPath(new URL('../..', import.meta.url))

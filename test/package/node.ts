/** Other Nodes than the one that runs the tests: npm has each as a package. */

import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runProgram } from './run.ts'

/** Installs a Node below `.cache/`, once, and returns the path of the program. */
export async function installNode(version: string): Promise<string> {
  const folder = fileURLToPath(new URL('../../.cache/node/', import.meta.url))
  const program = join(folder, version, 'node_modules/node/bin/node')
  if (existsSync(program)) return program
  await mkdir(folder, { recursive: true })
  const directory = await mkdtemp(join(folder, 'new-')) // Another run may install it at the same time.
  await writeFile(join(directory, 'package.json'), '{ "private": true, "allowScripts": { "node": true } }')
  await copyFile(new URL('../../.npmrc', import.meta.url), join(directory, '.npmrc'))
  // Its install script fetches the program, also when these tests run under `--ignore-scripts`.
  const options = ['--ignore-scripts=false', '--no-save', '--no-audit', '--no-fund']
  await runProgram('npm', ['install', ...options, `node@${version}`], directory)
  await rename(directory, join(folder, version)).catch(() => rm(directory, { recursive: true }))
  return program
}

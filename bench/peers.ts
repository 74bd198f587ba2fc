/** Installs what only the benchmark needs into bench/.peers, and finds it there. */

import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

const directory = fileURLToPath(new URL('.peers/', import.meta.url))
const wanted = new URL('peers.json', import.meta.url)

/** Installs the exact versions of peers.json, unless they are there. */
export function installPeers(): void {
  const { dependencies } = JSON.parse(readFileSync(wanted, 'utf8')) as { dependencies: Record<string, string> }
  if (Object.entries(dependencies).every(([name, version]) => installedVersion(name) === version)) return
  mkdirSync(directory, { recursive: true })
  copyFileSync(wanted, `${directory}package.json`)
  copyFileSync(new URL('../.npmrc', import.meta.url), `${directory}.npmrc`)
  execFileSync('npm', ['install', '--no-package-lock', '--no-audit', '--no-fund'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
}

function installedVersion(name: string): string | undefined {
  const manifest = `${directory}node_modules/${name}/package.json`
  if (!existsSync(manifest)) return undefined
  return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version
}

/** Imports a peer. Its types are not installed with the project, so the caller says what it uses. */
export async function importPeer<Module>(name: string): Promise<Module> {
  return (await import(String(pathToFileURL(resolvePeer(name))))) as Module
}

/** The file that stands for a peer, or for a file of it. */
export function resolvePeer(name: string): string {
  return createRequire(`${directory}package.json`).resolve(name)
}

/**
 * Run as a program: checks what `npm publish` would do. The version is in the changelog; the tarball holds what `exports` and
 * the README name, and nothing else than it may; the list of its dependencies (an SBOM) can be made.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** What may be shipped. */
const MAY_SHIP = [
  /^dist\/[\w./-]+\.(js|js\.map|d\.ts)$/,
  /^dist\/licences\.txt$/,
  /^docs\/[\w-]+\.md$/,
  /^docs\/(pictures\/[\w-]+\.webp|[\w-]+\.svg)$/,
  /^examples\/[\w./+-]+\.ts$/,
  /^bench\/[A-Z]+\.md$/,
  /^skills\/[a-z-]+\/SKILL\.md$/,
  /^(README|CHANGELOG|CONTRIBUTING|SECURITY)\.md$/,
  /^(LICENSE|compose\.yaml|package\.json)$/,
]

const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const changelog = readFileSync('CHANGELOG.md', 'utf8')
const readme = readFileSync('README.md', 'utf8')
const faults: string[] = []

const [, version] = /^## \[(\d+\.\d+\.\d+)\]/m.exec(changelog) ?? []
if (version !== manifest.version) {
  faults.push(`CHANGELOG.md: its latest version is ${version}, that of package.json ${manifest.version}`)
}

const published = JSON.parse(npm('publish', '--dry-run', '--json', '--ignore-scripts'))[manifest.name]
const shipped: readonly string[] = published.files.map(({ path }: { readonly path: string }) => path)
for (const path of shipped) {
  if (!MAY_SHIP.some((pattern) => pattern.test(path))) faults.push(`${path}: is shipped, and may not be`)
}

for (const [subpath, target] of Object.entries<string | Record<string, string>>(manifest.exports)) {
  for (const path of typeof target === 'string' ? [target] : Object.values(target)) {
    if (!shipped.includes(path.replace('./', ''))) faults.push(`exports ${subpath}: ${path} is not shipped`)
  }
}
for (const [, target = ''] of readme.matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
  const isShipped = shipped.some((path) => path === target || path.startsWith(`${target}/`))
  if (!isShipped) faults.push(`README.md: ${target} is not shipped, so the link is dead on the page of the package`)
}

const { components } = JSON.parse(createSbom())
const names: readonly string[] = components.map(({ name }: { readonly name: string }) => name)
for (const name of [manifest.name, ...Object.keys(manifest.dependencies)]) {
  if (!names.includes(name)) faults.push(`SBOM: ${name} is not in it`)
}

for (const fault of faults) console.error(fault)
console.log(
  `${manifest.name}@${manifest.version}: ${shipped.length} files, ${published.size} bytes packed, ${names.length} packages in the SBOM`,
)
process.exitCode = faults.length === 0 ? 0 : 1

/** Of what a user gets: the tarball, installed into an empty project. Frameworks and engines are the user's own. */
function createSbom(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hookline-sbom-'))
  try {
    const [{ filename }] = JSON.parse(npm('pack', '--json', '--ignore-scripts', '--pack-destination', folder))
    writeFileSync(join(folder, 'package.json'), '{ "name": "user", "version": "1.0.0", "private": true }')
    npm('install', '--prefix', folder, '--omit', 'peer', '--no-audit', '--no-fund', join(folder, filename))
    return npm('sbom', '--prefix', folder, '--sbom-format', 'cyclonedx')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function npm(...parameters: string[]): string {
  return execFileSync('npm', parameters, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1e8 })
}

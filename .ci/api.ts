/**
 * Run as a program: compares what users rely on with the lists in `test/api`: the names and types of each subpath, the subcommands and
 * their options, and what the page of the inspector does, as its tests in a browser say it. `--write` writes the lists.
 */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { CompilerState, Extractor, ExtractorConfig } from '@microsoft/api-extractor'

const folder = 'test/api'
const reports = mkdtempSync(join(tmpdir(), 'hookline-api-'))
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))

const lists = { ...listSubpaths(), 'command.txt': listOptions([]), 'page.txt': listPage() }
rmSync(reports, { recursive: true })

if (process.argv.includes('--write')) {
  mkdirSync(folder, { recursive: true })
  for (const name of readdirSync(folder)) if (!(name in lists)) rmSync(join(folder, name))
  for (const [name, text] of Object.entries(lists)) writeFileSync(join(folder, name), text)
}

const names = new Set([...Object.keys(lists), ...readdirSync(folder)])
const changed = [...names].filter((name) => (lists as Record<string, string>)[name] !== read(join(folder, name)))
for (const name of changed)
  console.error(
    `ERROR: ${folder}/${name} differs. Run 'npm run api -- --write', and describe the change in CHANGELOG.md.`,
  )
console.log(`${names.size} lists, ${changed.length} differ`)
process.exitCode = changed.length === 0 ? 0 : 1

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** A report for each subpath that has types. One compiler reads them all. */
function listSubpaths(): Record<string, string> {
  const entries = Object.entries<{ types?: string }>(manifest.exports).flatMap(([subpath, { types }]) =>
    types === undefined ? [] : [{ name: subpath.replace('.', 'hookline').replaceAll('/', '.'), types: resolve(types) }],
  )
  const configs = entries.map(({ name, types }) =>
    ExtractorConfig.prepare({
      configObject: {
        projectFolder: process.cwd(),
        mainEntryPointFilePath: types,
        compiler: {
          overrideTsconfig: {
            compilerOptions: {
              target: 'es2022',
              lib: ['es2024'],
              module: 'nodenext',
              strict: true,
              skipLibCheck: true,
              types: ['node'],
            },
            include: ['dist'],
          },
        },
        apiReport: {
          includeForgottenExports: true,
          enabled: true,
          reportFolder: reports,
          reportTempFolder: join(reports, 'new'),
          reportFileName: name,
        },
        docModel: { enabled: false },
        dtsRollup: { enabled: false },
        tsdocMetadata: { enabled: false },
      },
      configObjectFullPath: undefined,
      packageJsonFullPath: resolve('package.json'),
    }),
  )
  const [first] = configs as [ExtractorConfig, ...ExtractorConfig[]]
  const compilerState = CompilerState.create(first, { additionalEntryPoints: entries.map(({ types }) => types) })
  for (const config of configs) {
    const messageCallback = (message: { logLevel: string; handled: boolean }) => {
      message.handled = message.logLevel !== 'error'
    }
    Extractor.invoke(config, { compilerState, localBuild: true, messageCallback })
  }
  return Object.fromEntries(
    entries.map(({ name }) => {
      const report = readFileSync(join(reports, `${name}.api.md`), 'utf8')
      return [`${name}.api.md`, report.replaceAll(/ *\/\/ \(undocumented\)\n/g, '')]
    }),
  )
}

/** The usage and the options of a subcommand and of those below it. */
function listOptions(path: readonly string[]): string {
  const help = execFileSync(process.execPath, ['dist/cli.js', ...path, '--help'], { encoding: 'utf8' })
  const [usage = ''] = /^Usage: .*/m.exec(help) ?? []
  const options = [...help.matchAll(/^ {2}(-\S.*?)(?: {2,}|$)/gm)].map(([, flags]) => `  ${flags}\n`)
  const [, list = ''] = /^Commands:\n((?: .*\n)+)/m.exec(help) ?? []
  const below = [...list.matchAll(/^ {2}([\w-]+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'help')
  const forms = below.map((name) => listOptions([...path, name]))
  return `${usage.replace('Usage: ', '')}\n${options.sort().join('')}${forms.join('')}`
}

/** The titles of the tests in a browser. */
function listPage(): string {
  const files = readdirSync('tools/inspector/test/browser')
    .filter((name) => name.endsWith('.test.ts'))
    .sort()
  const titles = files.flatMap((name) => {
    const text = readFileSync(join('tools/inspector/test/browser', name), 'utf8')
    return [...text.matchAll(/^ *(?:it|test)(?:\.\w+)?(?:\([^'"`\n]*\))?\(\s*(['"`])(.*?)\1,/gm)].map(
      ([, , title]) => `${title}\n`,
    )
  })
  return titles.sort().join('')
}

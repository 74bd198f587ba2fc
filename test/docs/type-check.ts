/**
 * Run as a program: type-checks the files it is given, as a user's project with strict settings would, all in one program.
 * Prints the errors of each by its path. `hookline` is the sources, so that no declarations have to be built; the project `package`
 * compiles against those that ship.
 */

import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../../', import.meta.url))
const subpaths: string[] = Object.keys(JSON.parse(readFileSync(`${root}package.json`, 'utf8')).exports)

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2024.d.ts'],
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
  paths: Object.fromEntries(subpaths.map((subpath) => [subpath.replace('.', 'hookline'), [sourceOf(subpath)]])),
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  noUnusedLocals: true,
  erasableSyntaxOnly: true,
  allowImportingTsExtensions: true,
  verbatimModuleSyntax: true,
  moduleDetection: ts.ModuleDetectionKind.Force,
  allowJs: true,
  checkJs: true,
  skipLibCheck: true,
  noEmit: true,
}

const paths = process.argv.slice(2)
const program = ts.createProgram(paths, OPTIONS)
const general = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()]
if (general.length > 0) throw new Error(general.map(toText).join('\n'))
console.log(JSON.stringify(Object.fromEntries(paths.map((path) => [path, errorsOf(path)]))))

function sourceOf(subpath: string): string {
  const name = subpath === '.' ? 'index' : subpath.slice(2)
  const files = [`src/${name}.ts`, `src/${name}/index.ts`, `adapters/${name}.ts`, name]
  return `${root}${files.find((file) => existsSync(`${root}${file}`))}`
}

function errorsOf(path: string): string[] {
  const file = program.getSourceFile(path)
  if (file === undefined) return [`${path}: not part of the program`]
  return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(toText)
}

function toText({ file, start, messageText }: ts.Diagnostic): string {
  const text = ts.flattenDiagnosticMessageText(messageText, '\n')
  if (file === undefined || start === undefined) return text
  return `line ${file.getLineAndCharacterOfPosition(start).line + 1}: ${text}`
}

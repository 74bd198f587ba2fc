/**
 * Type-checks the files it is given as a user's project with strict settings would, all in one program. Prints the
 * errors of each by its path. A script of its own, because the compiler would hold up whoever waits for other blocks.
 */

import ts from 'typescript'

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts'],
  module: ts.ModuleKind.NodeNext,
  types: ['node'],
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

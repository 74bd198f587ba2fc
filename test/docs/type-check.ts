/** Type-checks files as a user's project with strict settings would, all in one program. */

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
  verbatimModuleSyntax: true,
  moduleDetection: ts.ModuleDetectionKind.Force,
  allowJs: true,
  checkJs: true,
  skipLibCheck: true,
  noEmit: true,
}

/** @returns The errors of each file, by its path; files without errors have an empty list. */
export function checkTypes(paths: readonly string[]): Map<string, string[]> {
  const program = ts.createProgram([...paths], OPTIONS)
  const global = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()]
  if (global.length > 0) throw new Error(global.map(toText).join('\n'))
  return new Map(paths.map((path) => [path, errorsOf(program, path)]))
}

/** @returns What is wrong with the `compilerOptions` of a tsconfig.json. */
export function checkCompilerOptions(options: unknown): string[] {
  return ts.convertCompilerOptionsFromJson(options, '.').errors.map(toText)
}

function errorsOf(program: ts.Program, path: string): string[] {
  const file = program.getSourceFile(path)
  if (file === undefined) return [`${path}: not part of the program`]
  return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)].map(toText)
}

function toText({ file, start, messageText }: ts.Diagnostic): string {
  const text = ts.flattenDiagnosticMessageText(messageText, '\n')
  if (file === undefined || start === undefined) return text
  return `line ${file.getLineAndCharacterOfPosition(start).line + 1}: ${text}`
}

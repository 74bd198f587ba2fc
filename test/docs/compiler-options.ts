/** Holds the `compilerOptions` of a tsconfig.json against the compiler. */

import ts from 'typescript'

/** @returns What is wrong with the options. */
export function checkCompilerOptions(options: unknown): string[] {
  return ts
    .convertCompilerOptionsFromJson(options, '.')
    .errors.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
}

/** Makes each function of the library say when it is entered: in the sources, as Node loads them. */

import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = fileURLToPath(new URL('../..', import.meta.url))
const ENTER = 'hooklineEnter'
const entered: string[] = []
let isRecording = false
Object.assign(globalThis, {
  [ENTER]: (file: string) => void (isRecording && entered.at(-1) !== file && entered.push(file)),
})

export function instrument(): void {
  registerHooks({
    load(url, context, load) {
      const path = url.startsWith('file:') ? relative(root, fileURLToPath(url)) : ''
      if (!/^(src|adapters)\/.*\.ts$/.test(path)) return load(url, context)
      const { outputText } = ts.transpileModule(readFileSync(fileURLToPath(url), 'utf8'), {
        compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ESNext, verbatimModuleSyntax: true },
        transformers: { before: [(context) => (file) => addCalls(file, context, path)] },
      })
      return { format: 'module', source: outputText, shortCircuit: true }
    },
  })
}

function addCalls(file: ts.SourceFile, context: ts.TransformationContext, path: string): ts.SourceFile {
  const { factory } = context
  const call = factory.createCallExpression(factory.createIdentifier(ENTER), undefined, [
    factory.createStringLiteral(path),
  ])
  const statement = factory.createExpressionStatement(call)

  function visit(node: ts.Node): ts.Node {
    const visited = ts.visitEachChild(node, visit, context)
    if (ts.isArrowFunction(visited) && !ts.isBlock(visited.body)) {
      const { modifiers, typeParameters, parameters, type, equalsGreaterThanToken, body } = visited
      const both = factory.createParenthesizedExpression(factory.createComma(call, body))
      return factory.updateArrowFunction(
        visited,
        modifiers,
        typeParameters,
        parameters,
        type,
        equalsGreaterThanToken,
        both,
      )
    }
    if (ts.isBlock(visited) && ts.isFunctionLike(node.parent)) {
      return factory.updateBlock(visited, [statement, ...visited.statements])
    }
    return visited
  }
  return ts.visitNode(file, visit) as ts.SourceFile
}

/** Records the files that are entered from `begin` to `end`. */
export function record() {
  const { promise: ended, resolve } = Promise.withResolvers<void>()
  return {
    ended,
    begin(): void {
      entered.length = 0
      isRecording = true
    },
    end: (): void => {
      isRecording = false
      resolve()
    },
    files: (): string[] => [...entered],
  }
}

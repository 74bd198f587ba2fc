/** The form of every error: what is wrong, what was found, what to do. Read from the sources, each throw of them. */

import { globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))

/** "`path` is required. Got undefined. Pass a file path." */
const FORM = /^[^.]*\S[\s\S]*\. Got [\s\S]+\. (…|[A-Z`][\s\S]*[.?])$/

const CLASSES: ReadonlyMap<string, number> = new Map([
  ['TypeError', 0],
  ['HooklineError', 1],
])

describe('each error says what is wrong, what was found and what to do', () => {
  const messages = globSync(['src/**/*.ts', 'adapters/**/*.ts'], { cwd: root }).sort().flatMap(messagesOf)

  it.each(messages)('$place', ({ text }) => {
    expect(text).toMatch(FORM)
  })

  it('of which there are many', () => {
    expect(messages.length).toBeGreaterThan(50)
  })
})

interface Found {
  readonly place: string
  readonly text: string
}

function messagesOf(path: string): Found[] {
  const code = readFileSync(`${root}${path}`, 'utf8')
  if (!/new (TypeError|HooklineError)\(/.test(code)) return []
  const source = ts.createSourceFile(path, code, ts.ScriptTarget.Latest, true)
  const found: Found[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isNewExpression(node)) {
      const place = CLASSES.get(node.expression.getText())
      const message = place === undefined ? undefined : node.arguments?.[place]
      const text = message && textOf(message)
      const line = source.getLineAndCharacterOfPosition(node.pos).line + 1
      if (text !== undefined) found.push({ place: `${path}:${line}`, text })
    }
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

/** Undefined for a message that another function wrote. */
function textOf(node: ts.Expression): string | undefined {
  if (ts.isStringLiteralLike(node)) return node.text
  if (ts.isTemplateExpression(node)) {
    const spans = node.templateSpans.map(({ expression, literal }) => {
      const constant = ts.isIdentifier(expression) ? textOfConstant(expression) : undefined
      return `${constant ?? '…'}${literal.text}`
    })
    return node.head.text + spans.join('')
  }
  if (ts.isBinaryExpression(node)) {
    const [left, right] = [textOf(node.left), textOf(node.right)]
    return `${left ?? '…'}${right ?? '…'}`
  }
  if (ts.isIdentifier(node)) return textOfConstant(node)
  return undefined
}

/** A message that was put into a `const` on the lines before. */
function textOfConstant(name: ts.Identifier): string | undefined {
  let scope: ts.Node = name
  while (scope.parent !== undefined) {
    scope = scope.parent
    const statements = ts.isBlock(scope) || ts.isSourceFile(scope) ? scope.statements : []
    for (const statement of statements) {
      if (!ts.isVariableStatement(statement)) continue
      for (const { name: declared, initializer } of statement.declarationList.declarations) {
        if (declared.getText() === name.text && initializer !== undefined) return textOf(initializer)
      }
    }
  }
  return undefined
}

/**
 * Run as a program: puts one fault after the other into a copy of the sources, and lists those that no test notices. There is no
 * threshold: a survivor is a question. By default the faults are in the lines that differ from `main`.
 *
 *     npx node .ci/mutate.ts --since v1.0.0
 *     npx node .ci/mutate.ts src/receive adapters/koa.ts --every 20   # one of twenty
 */

import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import ts from 'typescript'

interface Mutant {
  readonly file: string
  readonly line: number
  readonly was: string
  readonly becomes: string
  readonly text: string
}

const OPTIONS = ['--run', '--project=default', '--bail=1', '--passWithNoTests']
const OPPOSITES: Readonly<Record<string, string>> = {
  ...{ '===': '!==', '!==': '===', '<': '<=', '<=': '<', '>': '>=', '>=': '>' },
  ...{ '&&': '||', '||': '&&', '??': '&&', '+': '-', '-': '+', '*': '/', '+=': '-=', '-=': '+=' },
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { since: { type: 'string', default: 'main' }, every: { type: 'string', default: '1' } },
})
const all =
  positionals.length > 0 ? positionals.flatMap(filesIn).flatMap((file) => mutantsOf(file)) : changed(values.since)
const mutants = all.filter((_, index) => index % Number(values.every) === 0)
const copy = mkdtempSync(join(tmpdir(), 'hookline-mutants-'))
cpSync('.', copy, { recursive: true, filter: (path) => !/^(\.git|\.cache|dist)$|node_modules/.test(path) })
for (const folder of ['node_modules', 'dist']) symlinkSync(join(process.cwd(), folder), join(copy, folder), 'junction')

let survived = 0
for (const { file, line, was, becomes, text } of mutants) {
  const path = join(copy, file)
  const source = readFileSync(path, 'utf8')
  writeFileSync(path, text)
  const [folder, room] = file.split('/')
  const isNoticed = fails('run', folder === 'src' ? `test/${room}/` : folder) || fails('related', file)
  writeFileSync(path, source)
  survived += isNoticed ? 0 : 1
  console.log(`${isNoticed ? 'noticed ' : 'SURVIVED'} ${file}:${line}: ${was} → ${becomes}`)
}
rmSync(copy, { recursive: true })
console.log(`${mutants.length} faults of ${all.length}, ${survived} not noticed`)

function fails(command: string, path = ''): boolean {
  const args = ['node_modules/vitest/vitest.mjs', command, path, ...OPTIONS]
  return spawnSync(process.execPath, args, { cwd: copy, timeout: 600_000 }).status !== 0
}

function filesIn(path: string): string[] {
  return path.endsWith('.ts') ? [path] : globSync(`${path}/**/*.ts`).sort()
}

function changed(since: string): Mutant[] {
  const diff = execFileSync('git', ['diff', '-U0', since, '--', 'src', 'adapters', 'tools/*/src'], { encoding: 'utf8' })
  return diff.split(/^diff /m).flatMap((part) => {
    const file = part.match(/^\+\+\+ b\/(.*\.ts)$/m)?.[1]
    const hunks = [...part.matchAll(/^@@ -\S+ \+(\d+),?(\d*) @@/gm)].map(([, ...at]) => at.map(Number))
    const isChanged = (line: number) => hunks.some(([at = 0, count]) => line >= at && line < at + (count || 1))
    return file === undefined ? [] : mutantsOf(file).filter(({ line }) => isChanged(line))
  })
}

function mutantsOf(file: string): Mutant[] {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true)
  const found: Mutant[] = []
  const replace = (node: ts.Node, becomes: string): void => {
    const start = node.getStart()
    const line = source.getLineAndCharacterOfPosition(start).line + 1
    const text = source.text.slice(0, start) + becomes + source.text.slice(node.end)
    found.push({ file, line, was: source.text.slice(start, node.end).slice(0, 80), becomes, text })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node)) return
    const opposite = ts.isBinaryExpression(node) ? OPPOSITES[node.operatorToken.getText()] : undefined
    if (ts.isBinaryExpression(node) && opposite !== undefined) replace(node.operatorToken, opposite)
    if (node.kind === ts.SyntaxKind.TrueKeyword) replace(node, 'false')
    if (node.kind === ts.SyntaxKind.FalseKeyword) replace(node, 'true')
    if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken)
      replace(node, node.operand.getText())
    if (ts.isIfStatement(node)) replace(node.expression, 'false')
    if (ts.isExpressionStatement(node) && ts.isCallExpression(node.expression)) replace(node, '')
    ts.forEachChild(node, visit)
  }
  visit(source)
  return found
}

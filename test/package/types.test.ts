/** The declarations of the packed tarball under every module setting that can take them. */

import { cp, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import ts from 'typescript'
import { describe, expect, it } from 'vitest'
import { type Project, useProject } from './project.ts'
import { type Ran, runProgram } from './run.ts'

type Options = Readonly<Record<string, unknown>>

const STRICTEST = {
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  verbatimModuleSyntax: true,
  isolatedModules: true,
  erasableSyntaxOnly: true,
}

const TAKEN: readonly (Options & { readonly type: string })[] = [
  { type: 'module', module: 'nodenext' },
  { type: 'commonjs', module: 'nodenext' },
  { type: 'commonjs', module: 'node20' },
  { type: 'module', module: 'esnext', moduleResolution: 'bundler' },
  { type: 'module', module: 'preserve', moduleResolution: 'bundler' },
  { type: 'commonjs', module: 'commonjs', moduleResolution: 'bundler' },
  { type: 'module', module: 'node16' },
  { type: 'module', module: 'nodenext', lib: ['es2023'], ...STRICTEST }, // Without the types of a browser.
]

describe('an empty project', () => {
  const project = useProject(['@types/node@24', 'typescript@7'])

  it.each(TAKEN)('of type $type compiles by TypeScript 6 and 7 under %o', async ({ type, ...options }) => {
    expect(await compile(project(), type, 'use.ts', options)).toBe('')
    expect(await compileBy7(project(), type, 'use.ts', options)).toBe('')
  })

  it('is refused a wrong type', async () => {
    const wrong = "import { createReceiver } from 'hookline'\ncreateReceiver({ secret: 1 })\n"
    await writeFile(join(project().directory, 'wrong.ts'), wrong)
    for (const by of [compile, compileBy7]) {
      expect(await by(project(), 'module', 'wrong.ts', { module: 'nodenext' })).toContain('error TS2322')
    }
  })
})

describe.each([
  ['the newest majors', ['@types/node@24', 'express@5', '@types/express@5', 'koa@3', '@types/koa@3', 'fastify@5']],
  ['the majors before', ['@types/node@22', 'express@4', '@types/express@4', 'koa@2', '@types/koa@2', 'fastify@4']],
])('a project with %s of the frameworks', (_name, packages) => {
  const project = useProject(packages)

  it.each(['module', 'commonjs'])('of type %s compiles', async (type) => {
    expect(await compile(project(), type, 'frameworks.ts', { module: 'nodenext' })).toBe('')
    expect(await compile(project(), type, 'use.ts', { module: 'nodenext' })).toBe('')
  })
})

/** What a user of Lambda writes: the types of its events, results and context must fit. */
const LAMBDA = `
import type { ALBHandler, APIGatewayProxyHandler, APIGatewayProxyHandlerV2, Context, LambdaFunctionURLHandler } from 'aws-lambda'
import { createReceiver } from 'hookline'
import { type LambdaEvent, serve } from 'hookline/lambda'

const handler = serve(createReceiver({ secret: 'secret' }))
export const rest: APIGatewayProxyHandler = handler
export const http: APIGatewayProxyHandlerV2 = handler
export const url: LambdaFunctionURLHandler = handler
export const balanced: ALBHandler = handler
export const invoke = (event: LambdaEvent, context: Context) => handler(event, context)
`

describe('a project with the types of Lambda', () => {
  const project = useProject(['@types/node@24', '@types/aws-lambda@8'])

  it('compiles', async () => {
    await writeFile(join(project().directory, 'lambda.ts'), LAMBDA)
    const options = { module: 'nodenext', exactOptionalPropertyTypes: true }
    expect(await compile(project(), 'module', 'lambda.ts', options)).toBe('')
  })
})

/**
 * Compiles one of `programs/` and returns what the compiler says of it and of our declarations. Those of other packages
 * are not ours to judge, and some majors of them contradict each other.
 */
async function compile(project: Project, type: string, program: string, options: Options): Promise<string> {
  const { place, settings } = await layProgram(project, type, program, options)
  const config = ts.parseJsonConfigFileContent(settings, ts.sys, place)
  const compiled = ts.createProgram({
    rootNames: config.fileNames,
    options: config.options,
    configFileParsingDiagnostics: config.errors,
  })
  const ours = compiled
    .getSourceFiles()
    .filter(({ fileName }) => fileName.startsWith(`${place}/`) || fileName.includes('/hookline/dist/'))
  const diagnostics = [
    ...compiled.getConfigFileParsingDiagnostics(),
    ...compiled.getOptionsDiagnostics(),
    ...compiled.getGlobalDiagnostics(),
    ...ours.flatMap((file) => [
      ...compiled.getSyntacticDiagnostics(file),
      ...compiled.getSemanticDiagnostics(file),
      ...compiled.getDeclarationDiagnostics(file),
    ]),
  ]
  return ts.formatDiagnostics(diagnostics, ts.createCompilerHost(config.options))
}

/** TypeScript 7 is a program without the compiler's API, and judges the declarations of all packages. */
async function compileBy7(project: Project, type: string, program: string, options: Options): Promise<string> {
  const { place, settings } = await layProgram(project, type, program, options)
  await writeFile(join(place, 'tsconfig.json'), JSON.stringify(settings))
  const compiler = join(project.directory, 'node_modules/typescript/bin/tsc')
  const { stdout } = await runProgram(process.execPath, [compiler], place).catch((failed: Ran) => failed)
  return stdout
}

async function layProgram({ directory }: Project, type: string, program: string, options: Options) {
  const place = join(directory, type)
  await mkdir(place, { recursive: true })
  await cp(join(directory, program), join(place, program))
  await writeFile(join(place, 'package.json'), JSON.stringify({ private: true, type }))
  const base = { strict: true, noEmit: true, declaration: true, target: 'es2022', types: ['node'] }
  return { place, settings: { compilerOptions: { ...base, ...options }, files: [program] } }
}

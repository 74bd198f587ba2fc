/** Builds the page, for the build of the package and for tests. It runs in Node. */

import { readFile } from 'node:fs/promises'
import { build } from 'esbuild'
import { directImports } from '../direct-imports.ts'

/** The folder of the page, relative to the root of the repository, where builds and tests run. */
const FOLDER = 'tools/inspector/src/page'

/** Bundles and minifies the page, which consists of three files. `inputs` lists the paths of the source files. */
export async function buildPage(): Promise<{
  readonly page: Record<'html' | 'script' | 'style', string>
  readonly inputs: readonly string[]
}> {
  const { outputFiles, metafile } = await build({
    entryPoints: [`${FOLDER}/main.tsx`],
    outdir: 'page',
    bundle: true,
    metafile: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome111', 'firefox114', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    plugins: [directImports],
  })
  const textOf = (extension: string): string => outputFiles.find(({ path }) => path.endsWith(extension))?.text ?? ''
  const html = await readFile(`${FOLDER}/page.html`, 'utf8')
  const page = { html, script: textOf('.js'), style: textOf('.css') }
  return { page, inputs: Object.keys(metafile.inputs) }
}

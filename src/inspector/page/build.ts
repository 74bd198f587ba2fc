/** Builds the page, for the build of the package and for the tests: run by Node, never by a browser. */

import { readFile } from 'node:fs/promises'
import { build } from 'esbuild'

/** From the root of the repository, where builds and tests run: the configurations that import this are bundled elsewhere. */
const FOLDER = 'src/inspector/page'

/** Bundles and minifies the page. It loads nothing but these three. */
export async function buildPage(): Promise<Record<'html' | 'script' | 'style', string>> {
  const { outputFiles } = await build({
    entryPoints: [`${FOLDER}/main.tsx`],
    outdir: 'page',
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    target: ['chrome111', 'firefox114', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
  })
  const textOf = (extension: string): string => outputFiles.find(({ path }) => path.endsWith(extension))?.text ?? ''
  const html = await readFile(`${FOLDER}/page.html`, 'utf8')
  return { html, script: textOf('.js'), style: textOf('.css') }
}

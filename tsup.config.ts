import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { transform } from 'esbuild'
import { defineConfig } from 'tsup'
import { directImports } from './tools/direct-imports.ts'
import { buildPage } from './tools/inspector/build-page.ts'

const { page, inputs: pageInputs } = await buildPage()

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    sender: 'src/sender.ts',
    collector: 'src/collector.ts',
    client: 'src/client.ts',
    'queues/index': 'src/queues.ts',
    // Types alone: else their declarations go into those of an engine, and every user would need its package.
    'queues/queue': 'src/store/queue-types.ts',
    'queues/memory': 'src/queues-memory.ts',
    'queues/sqlite': 'src/queues-sqlite.ts',
    'queues/bullmq': 'src/queues-bullmq.ts',
    'queues/pg-boss': 'src/queues-pg-boss.ts',
    'dedupe/memory': 'src/dedupe-memory.ts',
    otel: 'src/otel.ts',
    testing: 'src/testing.ts',
    inspector: 'tools/inspector/src/index.ts',
    express: 'adapters/express.ts',
    koa: 'adapters/koa.ts',
    fastify: 'adapters/fastify.ts',
    node: 'adapters/node.ts',
    fetch: 'adapters/fetch.ts',
    lambda: 'adapters/lambda.ts',
    // A file of its own, which runs before undici is loaded.
    'sending-runtime': 'src/kit/runtime.ts',
    // The command: no types, and the packages that only it uses are built into it.
    cli: 'tools/command/src/bin.ts',
    // `hookline demo`: the example, over the files of the package.
    demo: 'examples/start.ts',
  },
  format: 'esm',
  target: 'node22',
  platform: 'node',
  dts: true,
  clean: true,
  // node:sqlite and others exist under their prefix only.
  removeNodeProtocol: false,
  define: { HOOKLINE_PAGE: JSON.stringify(JSON.stringify(page)) },
  noExternal: ['ajv', 'cli-progress', 'commander', 'yaml'],
  external: [/^hookline(\/|$)/],
  esbuildPlugins: [
    directImports,
    {
      // The sources read these fields of package.json. Its scripts and packages are nothing to users.
      name: 'manifest',
      setup(build) {
        build.onLoad({ filter: /[\\/]package\.json$/ }, async ({ path }) => {
          const { name, version, engines } = JSON.parse(await readFile(path, 'utf8'))
          return { contents: JSON.stringify({ name, version, engines }), loader: 'json' }
        })
      },
    },
    {
      // The packages that are built in: a CommonJS one cannot require() in an ES module, and nobody reads them here.
      name: 'built in',
      setup(build) {
        build.onResolve({ filter: /^(buffer|events|process|readline)$/ }, ({ path }) => ({
          path,
          namespace: 'builtins',
        }))
        build.onLoad({ filter: /./, namespace: 'builtins' }, ({ path }) => ({
          contents: `module.exports = process.getBuiltinModule('node:${path}')`,
        }))
        build.onLoad({ filter: /[\\/]node_modules[\\/].*\.[cm]?js$/ }, async ({ path }) => {
          const { code } = await transform(await readFile(path, 'utf8'), { minify: true, legalComments: 'none' })
          return { contents: code, loader: 'js' }
        })
      },
    },
    {
      // The packages that are built in ask for their licences to be shipped.
      name: 'licences',
      setup(build) {
        build.initialOptions.metafile = true
        build.onEnd(async ({ metafile }) => {
          const paths = [...Object.keys(metafile?.inputs ?? {}), ...pageInputs]
          const folders = paths.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0])
          const builtIn = [...new Set(folders.filter((folder) => folder !== undefined))].sort()
          const texts = builtIn.map(async (folder) => {
            const { name, version, license } = JSON.parse(await readFile(`${folder}/package.json`, 'utf8'))
            const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each))
            return `${name}@${version}, ${license}\n\n${(await readFile(`${folder}/${file}`, 'utf8')).trim()}\n`
          })
          await mkdir('dist', { recursive: true })
          await writeFile('dist/licences.txt', (await Promise.all(texts)).join(`\n${'-'.repeat(80)}\n\n`))
        })
      },
    },
  ],
})

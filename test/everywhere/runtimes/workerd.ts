/** workerd, the runtime of Cloudflare Workers: runs `programs/worker.mjs` with what it imports in one file. */

import { builtinModules } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'
import { Miniflare } from 'miniflare'

/** The date whose behaviour workerd is asked for. Those after it need a newer release. */
const COMPATIBILITY_DATE = '2026-04-01'

export async function bundleWorker(directory: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [join(directory, 'worker.mjs')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['node:*', 'cloudflare:*'],
    alias: Object.fromEntries(
      builtinModules.filter((name) => !name.startsWith('node:')).map((name) => [name, `node:${name}`]),
    ),
    banner: { js: "import { createRequire } from 'node:module'; const require = createRequire('file:///')" },
  })
  return outputFiles[0]?.text ?? ''
}

export async function startWorkerd(script: string, storage: string) {
  const miniflare = new Miniflare({
    modules: true,
    script,
    compatibilityDate: COMPATIBILITY_DATE,
    compatibilityFlags: ['nodejs_compat'],
    durableObjects: { INBOX: { className: 'Inbox', useSQLite: true } },
    durableObjectsPersist: storage,
  })
  const { port } = await miniflare.ready
  return { port: Number(port), stop: () => miniflare.dispose() }
}

/** The receiver and its Fetch adapter, bundled for a runtime at the edge: Web APIs, node:* modules and no `require`. */

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build, type Platform } from 'esbuild'
import { expect, it } from 'vitest'
import { fixtures, signedRequest } from '../../src/testing.ts'

const worker = `
  import { createReceiver } from './src/index.ts'
  import { serve } from './adapters/fetch.ts'

  const receiver = createReceiver({ secret: 'a secret' })
  receiver.on('track', (message) => console.log(message.event))
  const response = await serve(receiver)(new Request('https://edge.example/webhooks', MESSAGE))
  console.log(response.status, await response.text())
`

it.each(['neutral', 'browser'] as const)('bundled for %s, it receives a signed message', async (platform) => {
  const bundle = await bundleFor(platform)
  expect(/\brequire\(|__require/.exec(bundle)).toBeNull()
  // Not minified, and with what a bundler that splits leaves to be loaded on demand.
  expect(gzipSync(bundle).length).toBeLessThan(60 * 1024)

  const folder = await mkdtemp(join(tmpdir(), 'edge-'))
  try {
    await writeFile(join(folder, 'worker.mjs'), bundle)
    const { stdout } = await promisify(execFile)(process.execPath, [join(folder, 'worker.mjs')])
    expect(stdout).toBe('Order Completed\n200 {"ok":true}\n')
  } finally {
    await rm(folder, { recursive: true, maxRetries: 9 })
  }
})

async function bundleFor(platform: Platform): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: worker, resolveDir: fileURLToPath(new URL('../..', import.meta.url)) },
    define: { MESSAGE: JSON.stringify(signedRequest(JSON.stringify(fixtures.track), 'a secret')) },
    bundle: true,
    write: false,
    format: 'esm',
    platform,
    external: ['node:*'],
  })
  return outputFiles.map(({ text }) => text).join('')
}

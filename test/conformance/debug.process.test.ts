/** DEBUG=analytics, which is read when a process starts. */

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test('DEBUG=analytics turns debug logging on, which shows no write key', async () => {
  const program = `
    import { createClient } from '${new URL('../../src/collect/create-client.ts', import.meta.url)}'
    const client = createClient('the-write-key', { endpoint: 'http://127.0.0.1:1/v1/batch', maxRetries: 0, onError: () => {} })
    client.track({ userId: 'u', event: 'E' })
    await client.close()`
  const logOf = async (DEBUG: string) => {
    const options = { env: { ...process.env, DEBUG }, cwd: fileURLToPath(new URL('../..', import.meta.url)) }
    return (await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], options)).stderr
  }

  const [on, off] = await Promise.all([logOf('analytics'), logOf('')])

  expect(on).toContain('analytics')
  for (const key of ['the-write-key', btoa('the-write-key:')]) expect(on).not.toContain(key)
  expect(off).not.toContain('analytics')
})

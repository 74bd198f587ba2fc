/** Senders and clients in runtimes that trust more than the authorities they bring. */

import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'
import { createCertificate } from '../../src/testing/certificates.ts'
import { serveTls } from '../support/certificates.ts'
import type { Need } from '../support/last-lines.ts'
import { needs } from '../support/needs.ts'

const FILE = '/FILE'

const WAYS: readonly (readonly [
  name: string,
  env: Readonly<Record<string, string>>,
  args?: readonly string[],
  ...Need[],
])[] = [
  ['NODE_EXTRA_CA_CERTS', { NODE_EXTRA_CA_CERTS: FILE }],
  ['NODE_TLS_REJECT_UNAUTHORIZED=0', { NODE_TLS_REJECT_UNAUTHORIZED: '0' }, ['--disable-warning=Warning']],
  ['--use-system-ca', { SSL_CERT_FILE: FILE }, ['--use-system-ca'], 'Linux'], // Others have no file of them.
  ['--use-openssl-ca', { SSL_CERT_FILE: FILE }, ['--use-openssl-ca']],
]

for (const [name, env, args = [], ...needed] of WAYS) {
  it(
    `a runtime that trusts a self-signed certificate by ${name} sends no byte of a request`,
    needs(...needed),
    async () => {
      const { ca, server } = createCertificate('self_signed')
      const servers = await Promise.all(
        (['TLSv1.2', 'TLSv1.3'] as const).map((version) =>
          serveTls({ ...server, minVersion: version, maxVersion: version }),
        ),
      )
      const directory = await mkdtemp(join(tmpdir(), 'hookline-'))
      onTestFinished(() => rm(directory, { recursive: true, maxRetries: 9 }))
      const file = join(directory, 'trusted.pem')
      await writeFile(file, ca)
      const trusting = Object.fromEntries(
        Object.entries(env).map(([name, value]) => [name, value === FILE ? file : value]),
      )
      const program = fileURLToPath(new URL('trusting.ts', import.meta.url))

      const { stdout } = await promisify(execFile)(
        process.execPath,
        ['--disable-warning=ExperimentalWarning', ...args, program, ...servers.map(({ url }) => url)],
        { env: { PATH: process.env.PATH, ...trusting } },
      )

      const refused = [...Array(3).fill('self_signed'), expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT')]
      const lines = stdout.trim().split('\n')
      expect(lines.map((line) => JSON.parse(line))).toEqual(Array(2).fill([200, ...refused]))
      // The one request is the one of node:https, which shows that this runtime trusts the certificate.
      for (const { seen } of servers) expect(seen).toMatchObject({ connections: 7, requests: 1 })
    },
  )
}

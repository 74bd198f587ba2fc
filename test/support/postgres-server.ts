/** A PostgreSQL of the test's own, to be stopped and started; as Debian installs it. */

import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

export type PostgresServer = Awaited<ReturnType<typeof createPostgres>>

/** Where the programs are; undefined when they are not on this machine. */
export function findPostgres(): string | undefined {
  const [initdb] = globSync('/usr/lib/postgresql/*/bin/initdb')
  return initdb && dirname(initdb)
}

/** Makes one, that does not run yet. */
export async function createPostgres(programs: string) {
  const folder = await mkdtemp(join(tmpdir(), 'hookline-postgres-'))
  const [data, port] = [join(folder, 'data'), await findPort()]
  if (isRoot()) await run('chown', ['postgres', folder])
  await asPostgres(join(programs, 'initdb'), ['-A', 'trust', '-U', 'postgres', '--no-sync', '-D', data])
  const control = (...rest: string[]) => asPostgres(join(programs, 'pg_ctl'), ['-D', data, '-w', ...rest])
  const options = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 -c fsync=off` // The machine that it runs on does not crash.
  let isRunning = false
  async function stop(): Promise<void> {
    if (isRunning) await control('-m', 'immediate', 'stop')
    isRunning = false
  }
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async start(): Promise<void> {
      await control('-l', join(folder, 'log'), '-o', options, 'start')
      isRunning = true
    },
    stop,
    async dispose(): Promise<void> {
      await stop()
      await rm(folder, { recursive: true, force: true, maxRetries: 9 })
    },
  }
}

const run = promisify(execFile)

async function asPostgres(program: string, rest: readonly string[]): Promise<void> {
  if (isRoot()) await run('runuser', ['-u', 'postgres', '--', program, ...rest], { cwd: '/' })
  else await run(program, rest)
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function findPort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })
}

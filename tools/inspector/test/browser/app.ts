/** Starts the app of `programs/` in a process of its own, where the packed tarball is installed. */

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { hmac } from '../../../../test/support/hmac.ts'
import type { AppOptions, Commands, Started } from './programs/app.ts'

export interface App extends Started, Commands {
  post(body: object | string | Uint8Array, path?: '/webhooks' | '/inline', secret?: string): Promise<number>
  kill(): Promise<void>
}

const SECRET = 'the secret of the app'

interface Answer {
  readonly id: number
  readonly answer?: unknown
  readonly error?: string
}

/** Starts it. The caller kills it; it also ends when this process does. */
export async function startApp(directory: string, options: AppOptions = {}): Promise<App> {
  const { NODE_OPTIONS: _ours, NODE_ENV: _test, ...env } = process.env
  const APP = JSON.stringify(options)
  const child = fork(`${directory}/app.ts`, {
    cwd: directory,
    env: { ...env, APP },
    execArgv: ['--disable-warning=ExperimentalWarning'],
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const ended = once(child, 'exit')
  const early = ended.then(([code]) => Promise.reject(new Error(`The app ended with ${code} before it listened.`)))
  const [started]: Started[] = (await Promise.race([once(child, 'message'), early])) as [Started]
  early.catch(() => {})

  let commands = 0
  async function ask(command: string, args: readonly unknown[]): Promise<unknown> {
    commands += 1
    const id = commands
    child.send({ id, command, args })
    for (;;) {
      const [given] = (await once(child, 'message')) as [Answer]
      if (given.id !== id) continue
      if (given.error !== undefined) throw new Error(`${command}: ${given.error}`)
      return given.answer
    }
  }
  const asked = <Command extends keyof Commands>(command: Command) =>
    ((...args: readonly unknown[]) => ask(command, args)) as Commands[Command]

  return {
    ...(started as Started),
    record: asked('record'),
    queue: asked('queue'),
    partner: asked('partner'),
    counts: asked('counts'),
    async post(body, path = '/webhooks', secret = SECRET) {
      const isRaw = typeof body === 'string' || body instanceof Uint8Array
      const bytes = Buffer.from(isRaw ? (body as string) : JSON.stringify(body))
      const headers = { 'content-type': 'application/json', 'x-signature': hmac(bytes, secret) }
      const response = await fetch(`${(started as Started).origin}${path}`, { method: 'POST', headers, body: bytes })
      await response.arrayBuffer()
      return response.status
    },
    async kill() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** A server in its own process on its own core, as the benchmark sees it. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { answer, path } from './contenders.ts'
import type { ContenderName, Framework } from './frameworks.ts'
import { SERVER_CORE, spawnOn } from './pin.ts'
import type { Usage } from './server.ts'

/** A server that is up. */
export interface RunningServer {
  readonly url: string
  /** What its process has done so far. */
  usage(): Promise<Usage>
  stop(): Promise<void>
}

/** Starts a server and waits until it listens. */
export async function startServer(framework: Framework, contender: ContenderName): Promise<RunningServer> {
  const program = fileURLToPath(new URL('server.ts', import.meta.url))
  const child = spawnOn(SERVER_CORE, process.execPath, [program, framework, contender], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'production' },
  })
  const url = `http://127.0.0.1:${await heard<number>(child)}${path}`
  return {
    url,
    usage: () => {
      child.send('usage')
      return heard<Usage>(child)
    },
    async stop() {
      const exited = once(child, 'exit')
      child.disconnect()
      await exited
    },
  }
}

/**
 * Makes sure that a server does what it is measured for: answers what all answer, and refuses what is not signed.
 *
 * @throws Error that names the server.
 */
export async function validate(
  server: RunningServer,
  contender: ContenderName,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
): Promise<void> {
  const response = await post(server.url, headers, body)
  const isExpected = contender === 'octokit' ? response.status === 200 : response.printed === expected
  if (!isExpected) throw new Error(`${contender} answered ${response.printed} instead of ${expected}`)
  if (contender === 'bare') return
  const forged = await post(server.url, headers, Buffer.concat([body, Buffer.from(' ')]))
  if (forged.status < 400 || forged.status >= 500) throw new Error(`${contender} answered a forgery ${forged.status}`)
}

const expected = `200 application/json ${answer.length} ${answer}`

async function post(url: string, headers: Readonly<Record<string, string>>, body: Buffer) {
  const response = await fetch(url, { method: 'POST', headers, body: new Uint8Array(body) })
  const [type, length] = [response.headers.get('content-type'), response.headers.get('content-length')]
  return { status: response.status, printed: `${response.status} ${type} ${length} ${await response.text()}` }
}

async function heard<Message>(child: ChildProcess): Promise<Message> {
  if (!child.connected) throw new Error('The server has ended.')
  const stop = new AbortController()
  const { signal } = stop
  try {
    const ended = once(child, 'exit', { signal }).then(() => Promise.reject(new Error('The server has ended.')))
    const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [Message]
    return message
  } finally {
    stop.abort()
  }
}

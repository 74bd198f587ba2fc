/** A server in its own process on its own core, as the benchmark sees it. */

import { fileURLToPath } from 'node:url'
import { startChild } from '../child.ts'
import { answer, path } from './contenders.ts'
import type { ContenderName, Framework } from './frameworks.ts'
import { SERVER_CORE } from './pin.ts'
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
  const [child, port] = await startChild<number>(SERVER_CORE, [program, framework, contender])
  return { url: `http://127.0.0.1:${port}${path}`, usage: () => child.ask('usage'), stop: child.stop }
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

/** The load: wrk, or autocannon where there is no wrk, with 50 connections that stay open. */

import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { resolvePeer } from '../peers.ts'
import { isInstalled, LOAD_CORE, spawnOn } from './pin.ts'

const CONNECTIONS = 50
const NO_END = '600'
const FAILURES = /Non-2xx|Socket errors|"(?:non2xx|errors|timeouts)":[1-9]/

/** What makes the load. */
export const generator = isInstalled('wrk') ? 'wrk' : 'autocannon'

/** A load that is on. */
export interface Load {
  /** Ends it. Resolves to what it printed. Rejects when an answer was not 2xx. */
  stop(): Promise<string>
}

/** Posts the body to the url over and over. */
export function startLoad(url: string, headers: Readonly<Record<string, string>>, body: Buffer): Load {
  const child = generator === 'wrk' ? startWrk(url, headers, body) : startAutocannon(url, headers, body)
  const output = text(child.stdout as Readable)
  const closed = once(child, 'close')
  return {
    async stop() {
      child.kill('SIGINT') // Both print what they counted, and end.
      await closed
      const printed = await output
      if (FAILURES.test(printed)) throw new Error(`Not every answer was 2xx:\n${printed}`)
      return printed
    },
  }
}

function startWrk(url: string, headers: Readonly<Record<string, string>>, body: Buffer): ChildProcess {
  const script = join(mkdtempSync(join(tmpdir(), 'bench-')), 'post.lua')
  const lines = Object.entries(headers).map(([name, value]) => `wrk.headers['${name}'] = '${value}'`)
  writeFileSync(script, ["wrk.method = 'POST'", `wrk.body = [[${body}]]`, ...lines].join('\n'))
  return spawnOn(LOAD_CORE, 'wrk', ['-t1', '--latency', `-c${CONNECTIONS}`, `-d${NO_END}`, '-s', script, url], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

function startAutocannon(url: string, headers: Readonly<Record<string, string>>, body: Buffer): ChildProcess {
  const heads = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}=${value}`])
  const args = ['-m', 'POST', '-c', String(CONNECTIONS), '-d', NO_END, '--json', ...heads, '-b', String(body), url]
  return spawnOn(LOAD_CORE, process.execPath, [resolvePeer('autocannon/autocannon.js'), ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
}

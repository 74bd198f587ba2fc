/** Starts the endpoints of this folder, which are not ours, and checks them. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished } from 'vitest'
import { listen } from '../../../../src/testing/server.ts'
import { readForm } from '../../src/arguments.ts'
import { ENDPOINT_CASES } from '../../src/check/cases.ts'
import { runCases } from '../../src/check/run.ts'
import type { Result } from '../../src/report.ts'
import { createEndpoint } from './server.ts'

export const SECRET = 'the secret of the test'

const folder = fileURLToPath(new URL('./', import.meta.url))

export type Language = 'python3' | 'node'

/** Starts an endpoint, in a process of its own unless it is of Node: right, or with the one fault that is named. Returns its URL. */
export async function startOther(language: Language, fault = '', onEnd = onTestFinished): Promise<string> {
  if (language === 'node') {
    const { origin, close } = await listen(createEndpoint(SECRET, fault), 0)
    onEnd(close)
    return `${origin}/webhooks`
  }
  const env = { ...process.env, SECRET, FAULT: fault }
  const child = spawn(language, ['server.py'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'ignore'] })
  onEnd(() => void child.kill('SIGKILL'))
  const [port] = await once(child.stdout, 'data')
  return `http://127.0.0.1:${Number(port)}/webhooks`
}

/** The cases that fail where a body is written anew, or parsed, before it is verified. */
export const FAILING = {
  rewritten: [
    ...['body-extended', 'bytes-decimal', 'bytes-escapes', 'bytes-exponent', 'bytes-indented'],
    ...['bytes-line-break-at-end', 'bytes-line-separator', 'bytes-space-at-start', 'bytes-spaces'],
  ],
  escaped: ['bytes-escaped-non-ascii', 'bytes-escaped-slash'],
  parsedFirst: ['forged-not-json', 'unsigned-empty-body'],
}

/** What an endpoint with a fault gets: the cases that fail, no others, and what the report says among else. */
export type Fault = readonly [fault: string, fails: readonly string[], says: RegExp]

export async function expectFault(language: Language, expected: Fault, onEnd = onTestFinished): Promise<void> {
  const [fault, fails, says] = expected
  const bad = Object.values(await findFaults(await startOther(language, fault, onEnd)))

  const failed = bad.filter(({ result, sentence }) => result === 'fail' && !sentence.startsWith('Not sent'))
  expect(failed.map(({ id }) => id).sort()).toEqual(fails.toSorted())
  const sentences = bad.map(({ sentence }) => sentence).join('\n')
  expect(sentences).toMatch(says)
  expect(sentences).not.toContain(SECRET)
}

/** Runs all cases in this process. What is not right, by id. */
export async function findFaults(url: string): Promise<Readonly<Record<string, Result>>> {
  const results: Result[] = []
  const report = { add: (found: Result) => void results.push(found), finish: () => {} }
  const cases = ENDPOINT_CASES.filter(({ id }) => id !== 'certificate')
  const { signal } = new AbortController()
  const request = readForm({ as: 'segment' })
  await runCases(cases, { url: new URL(url), secret: SECRET, headers: {}, signal, request }, report)
  return Object.fromEntries(results.filter(({ result }) => result !== 'pass').map((found) => [found.id, found]))
}

/** `hookline check URL`, as a process: against endpoints of other languages, and what it says of wrong usage. */

import { readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { startEndpoint } from '../../../src/testing/scripted-endpoint.ts'
import { needs } from '../../../test/support/needs.ts'
import { until } from '../../../test/support/until.ts'
import { ENDPOINT_CASES, SENDER_CASES } from '../src/check/cases.ts'
import { createFolder, hookline, start } from './command.ts'
import { check, programsOf, SECRET, startOther } from './endpoints/start.ts'

vi.setConfig({ testTimeout: 60_000 }) // A run ends within that.

const env = { HOOKLINE_SECRET: SECRET }

describe('a right endpoint', () => {
  for (const language of ['python3', 'php', 'ruby', 'node'] as const) {
    it(`passes: ${language}`, needs(...programsOf(language)), async () => {
      const { code, bad, results, stderr } = await check(await startOther(language))
      expect(bad).toEqual([])
      expect(results.map(({ id }) => id)).toEqual(
        ENDPOINT_CASES.map(({ id }) => id).filter((id) => id !== 'certificate'),
      )
      expect(stderr).toMatch(
        /^Sends about \d+ messages, .* to http:\/\/127\.0\.0\.1:\d+\/webhooks\.\n\d+ passed, 0 failed/,
      )
      expect(code).toBe(0)
    })
  }
})

describe('what is printed', () => {
  it('are ids, sentences and sections, as the guide lists them', () => {
    const guide = readFileSync(new URL('../../../docs/checks.md', import.meta.url), 'utf8')
    const rows = guide.split('\n').filter((line) => line.startsWith('| `'))
    const escapes = /[\\<>|]/g
    const all = [...ENDPOINT_CASES, ...SENDER_CASES]
    const expected = all.map(
      ({ id, sends, expects, severity, section }) =>
        `| \`${id}\` | ${sends.replace(escapes, '\\$&')} | ${expects} | ${severity} | ${section} |`,
    )
    expect(rows).toEqual(expected)
    expect(new Set(all.map(({ id }) => id)).size).toBe(expected.length)
  })

  it('with --list: all cases, and nothing is sent', async () => {
    const { code, stdout } = await hookline(['check', '--list'])
    expect(stdout.trim().split('\n')).toHaveLength(ENDPOINT_CASES.length)
    expect(code).toBe(0)
  })

  it('with --only: these cases', async () => {
    const url = await startOther('node')
    const { results } = await check(url, '--only', 'bytes-float,type-page', '--only', 'nul')
    expect(results.map(({ id }) => id)).toEqual(['type-page', 'bytes-float', 'nul'])
  })

  it('never the secret, and nothing of the query of the URL', async () => {
    const url = await startOther('node', 'quoted-secret')
    const { stdout, stderr } = await hookline(['check', `${url}?token=t0ken`], { env })
    expect(stdout + stderr).not.toMatch(new RegExp(`${SECRET}|t0ken`))
    expect(stdout).toContain('Its secret is in quotation marks. Remove them.')
  })

  it('by cause at the end, with what was answered; on a terminal no passes', needs('util-linux'), async () => {
    await using endpoint = await startEndpoint({
      script: [({ message }) => ({ status: message ? 200 : 400, body: 'tea\u001b[2J' })],
    })
    const { stdout, code } = await hookline(
      ['check', endpoint.url, '--only', 'signature-missing,signature-forged,body-changed'],
      { env },
    )
    expect(code).toBe(1)
    const [, summary = ''] = stdout.split('\n\n')
    expect(summary).toBe(
      'fail  A 2xx takes it. Each message with a forged signature gets the same: verify it, and answer 401 when it is wrong.\n' +
        '      3 cases: signature-missing, signature-forged, body-changed\n      answered: tea\\u{1b}[2J\n',
    )
    const terminal = await start(['check', endpoint.url, '--only', 'type-page,signature-forged'], {
      env,
      isTerminal: true,
    })
    const shown = await terminal.ended
    expect(shown.stdout).not.toContain('type-page')
    expect(shown.stdout).toContain('signature-forged')
    expect(shown.stdout).toContain('1 passed, 1 failed')
  })

  it('until Ctrl-C: what was seen so far', needs('POSIX'), async () => {
    const url = await startOther('node', 'hangs-at-third')
    const { child, printed, ended } = await start(['check', url, '--json'], { env })
    await until(() => printed.stdout.includes('answer-in-time'))
    child.kill('SIGINT')
    expect((await ended).stderr).toMatch(
      /^Interrupted: 2 of \d\d cases ran\. 2 passed, 0 failed, 0 warned, 0 skipped\.$/m,
    )
    expect(child.exitCode).toBe(1)
  })
})

it('fails for a self-signed certificate, and sends nothing', async () => {
  await using endpoint = await startEndpoint({ tls: 'self_signed' })
  const { code, results } = await check(endpoint.url)
  expect(results[0]).toMatchObject({ id: 'certificate', result: 'fail', sentence: /self-signed/ })
  expect(new Set(results.slice(1).map(({ result }) => result))).toEqual(new Set(['fail']))
  expect(endpoint.requests).toEqual([])
  expect(code).toBe(1)
})

it.each(['check', 'send'])('%s refuses a self-signed certificate, whatever the environment trusts', async (command) => {
  await using endpoint = await startEndpoint({ tls: 'self_signed' })
  const file = join(await createFolder(), 'ca.pem')
  await writeFile(file, endpoint.ca)
  const trusting = { NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_EXTRA_CA_CERTS: file }
  const args = command === 'send' ? ['send', 'track', '--to', endpoint.url] : ['check', endpoint.url]
  const started = await start(args, { env: { ...env, ...trusting } })
  const { code, stdout, stderr } = await started.ended
  expect([code, stdout + stderr]).toEqual([1, expect.stringMatching(/self-signed/)])
  expect(endpoint.requests).toEqual([])
})

describe('wrong usage is one sentence, and exit code 2', () => {
  it.each([
    ['no URL', ['check'], /A URL is required/],
    [
      'no full URL',
      ['check', 'localhost:3000/webhooks'],
      /^error: The URL must begin with http:\/\/ or https:\/\/\. Got localhost:3000\/webhooks\. Pass http:\/\/localhost:3000\/webhooks\.\n$/,
    ],
    [
      'no full URL, with a password',
      ['check', 'me:hunter2@localhost'],
      /^error: [^2]*Got another text\. Pass http:[^2]*\n$/,
    ],
    ['no secret', ['check', 'http://localhost:1/'], /A secret is required/],
    [
      'an unknown case',
      ['check', '--list', '--only', 'bytes-flaot'],
      /no case has the id 'bytes-flaot'\. Did you mean bytes-float\?/,
    ],
    ['another machine without --yes', ['check', 'http://example.invalid/', '--secret', 's'], /no terminal to ask on/],
    ['a host that does not exist', ['check', 'http://example.invalid/', '--secret', 's', '--yes'], /must resolve/],
    ['a file that cannot be written', ['check', 'http://localhost:1/', '--secret', 's', '--junit', '/no/x'], /--junit/],
  ])('%s', async (_name, args, message) => {
    const { code, stdout, stderr } = await hookline(args)
    expect(stderr).toMatch(message)
    expect(stderr).not.toMatch(/^ +at /m)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })

  it('a server that is not there', async () => {
    const { code, stderr } = await hookline(['check', 'http://127.0.0.1:1/'], { env })
    expect(stderr).toMatch(/error: The server must accept connections\. Got .*ECONNREFUSED/)
    expect(code).toBe(2)
  })
})

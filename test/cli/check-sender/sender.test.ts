/** `hookline check --sender`, as a process. */

import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import https from 'node:https'
import { createDestination } from 'hookline/sender'
import { expect, it, onTestFinished } from 'vitest'
import type { CaseFacts } from '../../../src/cli/report.ts'
import { needs } from '../../support/needs.ts'
import { until } from '../../support/until.ts'
import { hookline, jsonLines, listenHere, type Started, start } from '../command.ts'
import { SECRET, sendAll } from './senders.ts'

const env = { HOOKLINE_SECRET: SECRET }

async function listen(...args: string[]): Promise<Started & { url: string; count: number }> {
  const started = await start(['check', '--sender', ...args], { env })
  await until(() => started.printed.stderr.includes('Send '))
  const [, url = '', count] = /^Listening at (\S+)\n.*Send (\d+) message/.exec(started.printed.stderr) ?? []
  return { ...started, url, count: Number(count) }
}

function createFastDestination(url: string) {
  const destination = createDestination({
    webhooks: [{ url }],
    sharedSecret: SECRET,
    random: () => 0, // Retries after a second.
    onAttempt: () => {},
  })
  onTestFinished(() => void destination.close())
  return destination
}

it('passes a destination', async () => {
  const { url, count, ended } = await listen('--strict')
  const destination = createFastDestination(url)
  for (let number = 1; number <= count; number += 1) await destination.track({ userId: `u${number}`, event: 'x' })
  const { code, stdout, stderr } = await ended

  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/webhooks$/)
  expect(stdout.match(/^\w+/gm)).toEqual(Array(19).fill('pass'))
  expect(stderr).toMatch(/^Message 5, attempt 2, \d+ bytes: 200\.$/m)
  expect(stderr).toMatch(/^Waiting for .*: \d+ s at most\.$/m)
  expect(stderr).toMatch(/^19 passed, 0 failed, 0 warned, 0 skipped\.$/m)
  expect(code).toBe(0)
})

it('fails for a fault, as JSON', async () => {
  const { url, count, ended } = await listen('--json', '--wait', '2', '--only', 'method,signature')
  await sendAll(url, count, { sign: () => 'x'.repeat(40) })
  const { code, stdout } = await ended
  expect(count).toBe(1)
  expect(jsonLines(stdout)).toMatchObject([
    { id: 'method', result: 'pass', section: 'Outbound event delivery, Outbound delivery' },
    { id: 'signature', result: 'fail', section: 'Outbound event delivery, Authentication 2' },
  ])
  expect(code).toBe(1)
})

it('ends on Ctrl-C with what was seen so far', needs('POSIX'), async () => {
  const { url, child, ended } = await listen()
  await sendAll(url, 1, { method: 'PUT' })
  child.kill('SIGINT')
  const { code, stdout, stderr } = await ended
  expect(stdout).toMatch(/^fail {2}method {2,}1 of 1 requests: The method must be POST\. Got PUT\./m)
  expect(stdout.match(/^skip/gm)).toHaveLength(9)
  expect(stderr).not.toContain('    at ')
  expect(code).toBe(1)
})

it('passes a sender that refuses a self-signed certificate', async () => {
  const { url, ended } = await listen('--tls')
  const destination = createFastDestination(url)
  await destination.track({ userId: 'u1', event: 'x' })
  expect(await ended).toMatchObject({
    code: 0,
    stdout: 'pass  self-signed  The sender ended the connection and sent no request. (Authentication 4)\n',
  })
  expect(url).toMatch(/^https:\/\/localhost:\d+\/webhooks$/)
})

it('passes one that ends the handshake with an alert', needs('python3'), async () => {
  const { url, ended } = await listen('--tls')
  spawn('python3', ['-c', `import urllib.request as u; u.urlopen('${url}', b'{}')`], { stdio: 'ignore' })
  expect((await ended).stdout).toMatch(/^pass {2}self-signed/)
})

it('fails one that accepts it, and one that speaks http', async () => {
  const accepting = await listen('--tls')
  https
    .request(accepting.url, { method: 'POST', rejectUnauthorized: false, agent: false })
    .on('error', () => {})
    .end('{}')
  expect(await accepting.ended).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^fail {2}self-signed .*sent its request/),
  })

  const plain = await listen('--tls')
  await fetch(plain.url.replace('https', 'http')).catch(() => {})
  expect(await plain.ended).toMatchObject({
    code: 1,
    stdout: expect.stringMatching(/^fail {2}self-signed .*spoke http\./),
  })
})

it.each([
  [[], 'No request came within 1 s. '],
  [['--tls'], 'No connection came within 1 s. '],
])('judges no sender that sends nothing: %j', async (args, sentence) => {
  const { code, stdout, stderr } = await hookline(['check', '--sender', '--wait', '1', ...args], { env })
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toContain(`error: ${sentence}`)
})

it('lists its cases, as the guide does', async () => {
  const { stdout, code } = await hookline(['check', '--sender', '--list', '--json'])
  const guide = readFileSync(new URL('../../../docs/command.md', import.meta.url), 'utf8')
  const [, section = ''] = guide.split('\n## `hookline check --sender`')
  const rows = section.split('\n## ', 1)[0]?.match(/^\| `[a-z].*/gm)
  const cases = jsonLines<CaseFacts>(stdout)
  expect(rows).toEqual(
    cases.map((each) => `| \`${each.id}\` | ${each.sends} | ${each.expects} | ${each.severity} | ${each.section} |`),
  )
  expect(code).toBe(0)
})

it('says what is wrong with its arguments', async () => {
  const { port } = new URL(await listenHere(createServer()))
  const sentences = {
    [`--port ${port}`]: `error: --port must be free. Got port ${port} of 127.0.0.1, which is in use. Pass another one.\n`,
    '--only self-signed': 'error: With --tls, the case self-signed runs alone; without it, the others.\n',
    '--only methd': "error: --only: no case has the id 'methd'. Did you mean method? --list prints all.\n",
  }
  for (const [args, sentence] of Object.entries(sentences)) {
    const { code, stderr } = await hookline(['check', '--sender', ...args.split(' ')], { env })
    expect({ code, stderr }).toEqual({ code: 2, stderr: sentence })
  }
})

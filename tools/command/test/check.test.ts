/** `hookline check URL`: right endpoints pass, each fault fails the right cases, and what is printed. */

import { readFileSync } from 'node:fs'
import { sign } from 'hookline'
import { startEndpoint } from 'hookline/testing'
import { expect, it } from 'vitest'
import type { Exchange } from '../../../src/internals.ts'
import { until } from '../../../test/support/until.ts'
import { ENDPOINT_CASES, SENDER_CASES } from '../src/check/cases.ts'
import { kindOf } from '../src/check/judge.ts'
import type { Result } from '../src/report.ts'
import { expectUsage, hookline, jsonLines, like, start } from './command.ts'
import { expectFault, FAILING, type Fault, findFaults, SECRET, startOther } from './endpoints/start.ts'

type Message = Readonly<Record<'type' | 'context' | 'timestamp' | 'messageId' | 'groupId', string>> & Fields
type Fields = Readonly<Record<'traits' | 'properties', { readonly check: string }>>
const env = { HOOKLINE_SECRET: SECRET }

it('a right endpoint passes with the exit code 0, in all cases', async () => {
  const { code, stdout, stderr } = await hookline(['check', await startOther('node'), '--json'], { env })
  const results = jsonLines<Result>(stdout)
  expect(results.filter(({ result }) => result !== 'pass')).toEqual([])
  expect(results.map(({ id }) => id)).toEqual(ENDPOINT_CASES.map(({ id }) => id).filter((id) => id !== 'certificate'))
  expect([code, stderr]).toEqual([0, like(/http:\/\/127\.0\.0\.1:\d+\/webhooks\. .+\n\d+ passed, 0 failed/)])
})

const { rewritten, escaped, parsedFirst } = FAILING
const DOUBLES = ['bytes-float', 'bytes-big-integer', 'bytes-index-keys']
const PHP = ['bytes-escaped-non-ascii', 'bytes-slash', 'bytes-html']
const FAULTS: readonly Fault[] = [
  ['stringify', [...rewritten, ...escaped, ...parsedFirst, ...DOUBLES], /JSON\.stringify/],
  ['escapes', [...rewritten, ...parsedFirst, ...DOUBLES, ...PHP], /PHP writes/],
  ['text', ['bytes-non-ascii'], /normalises Unicode/],
  ['first-chunk', ['body-in-pieces', 'large-body'], /first packet/],
  ['quoted-secret', ['plain-message'], /quotation marks/],
  ['resets', ['type-group'], /connection was closed/],
  ['header-case', ['header-names-in-lower-case'], /case-insensitive/],
  ['limits', ['bytes-index-keys', 'bytes-key-order'], /Not sent: .*limits/],
  ['dies', ['signed-null'], /has not responded/],
  ['no-track', ['type-track'], /422/],
  ['reveals', ['signature-forged'], /right signature/],
  ['asks-for-login', ['plain-message'], /Basic .*--header/],
  ['other-header', ['plain-message'], /X-Signature/],
  ['unknown-user', ['plain-message'], /404/],
  ['busy', [], /503/],
]

it.each(FAULTS)('an endpoint with the fault %s fails the right cases, and no others', (...fault) =>
  expectFault('node', fault),
)

it.each<[string, 'pass' | 'fail', (message: Message, text: string) => boolean]>([
  ['With a space after', 'fail', (_message, text) => text.includes('", "')],
  ['Without a context', 'pass', ({ context }) => context === undefined],
  ['without milliseconds', 'fail', ({ timestamp }) => !timestamp.includes('.')],
  ['messageId', 'fail', ({ messageId }) => messageId !== undefined],
  ['identify', 'pass', ({ type, traits }) => type === 'identify' && traits.check === 'plain-message'],
  ['page', 'pass', ({ type, properties }) => type === 'page' && properties.check === 'plain-message'],
  ['group', 'pass', ({ type, groupId, traits }) => type === 'group' && groupId !== '' && 'check' in traits],
])('an endpoint that accepts a plain message only in one form is told so: %s, %s', async (says, result, accepts) => {
  const isTaken = (text: string, given = '') => given === sign(text, SECRET) && accepts(JSON.parse(text), text)
  await using endpoint = await startEndpoint({
    script: [({ bytes, headers }) => (isTaken(`${bytes}`, headers['x-signature']) ? 200 : 401)],
  })
  const { stdout } = await hookline(['check', endpoint.url, '--only', 'plain-message', '--json'], { env })
  const facts = { id: 'plain-message', section: 'Outbound event delivery, Authentication 3', result }
  const found = { sentence: expect.stringContaining(says), durationMs: expect.any(Number) }
  expect(jsonLines(stdout)).toEqual([{ ...facts, ...found }])
})

it('an answer is judged by the hundred of its status', () => {
  const kinds = [200, 299, 300, 399, 400, 499, 500, undefined].map((status) => kindOf({ status } as Exchange)[0])
  expect(kinds.join('')).toBe('ssrrrrfb') // success, redirect, refusal, failure, broken
})

it('--list prints what each case sends and expects', async () => {
  const { stdout } = await hookline(['check', '--list', '--json'])
  const facts = ['id', 'sends', 'expects', 'section', 'severity']
  expect(jsonLines(stdout)).toEqual(JSON.parse(JSON.stringify(ENDPOINT_CASES, facts)))
})

it('an endpoint that accepts no plain message fails one case, and the others are skipped', async () => {
  const { 'plain-message': plain, ...others } = await findFaults(await startOther('node', 'quoted-secret'))
  expect(plain?.result).toBe('fail')
  expect(new Set(Object.values(others).map(({ result }) => result))).toEqual(new Set(['skip']))
})

it('the guide lists each case once, in the order of a run, and what a wrong answer counts as', () => {
  const guide = readFileSync(new URL('../../../docs/command.md', import.meta.url), 'utf8')
  const all = [...ENDPOINT_CASES, ...SENDER_CASES]
  const [, table = ''] = guide.split('### The cases')
  const idsIn = (text = '') =>
    [...text.matchAll(/`([a-z0-9-]+)`/g)].flatMap(([, id]) => all.filter((each) => each.id === id))

  const rows = [...table.matchAll(/^\| (.+) \| .+ \| (`(?:fail|warn)`.*) \|$/gm)]
  const listed = rows.flatMap(([, cases, otherwise = '']) => {
    const [, severity] = /^`(fail|warn)`/.exec(otherwise) ?? []
    return idsIn(cases).map(({ id }) => [id, idsIn(otherwise).some((each) => each.id === id) ? 'warn' : severity])
  })

  expect(listed).toEqual(all.map(({ id, severity }) => [id, severity]))
})

it('the section of each case is one of the specification, with its rule', () => {
  const page = readFileSync(new URL('../../../docs/specification.md', import.meta.url), 'utf8').replaceAll('`', '')
  const [, outbound = ''] = page.split(/^## (?:Outbound event delivery|Go client library)$/m)
  const sections = outbound.split(/^### /m).map((text) => ({ name: text.split('\n')[0], text }))

  const cited = new Set([...ENDPOINT_CASES, ...SENDER_CASES].map(({ section }) => section))
  const missing = [...cited].filter((section) => {
    const [, name, rule = ''] = /^(.*?)(?:(?:: | (?=\d))(.*))?$/.exec(section) ?? []
    return !sections.some((each) => each.name === name && each.text.includes(`\n| ${rule}`))
  })

  expect(cited.size).toBeGreaterThan(10)
  expect(missing).toEqual([])
})

it('the summary is by cause, with what was answered, and without the query of the URL', async () => {
  const body = 'tea\u001b[2J'
  await using endpoint = await startEndpoint({ script: [({ message }) => ({ status: message ? 200 : 400, body })] })
  const args = ['check', `${endpoint.url}?token=t0ken`, '--only', 'type-page, signature-forged,body-changed']

  const { code, stdout, stderr } = await hookline(args, { env })

  const [, summary] = stdout.split('\n\n')
  expect(summary).toMatch(/^fail .*\n.*signature-forged, body-changed\n.*tea\\u\{1b\}\[2J\n$/)
  expect([code, stderr]).toEqual([
    1,
    like(/https:\/\/hookline\.github\.io\/hookline\/specification\n1 passed, 2 failed/),
  ])
  expect(stdout + stderr).not.toContain('t0ken')
})

it('Ctrl-C prints what was seen so far', async () => {
  const url = await startOther('node', 'hangs-at-third')
  const { printed, ended, interrupt } = await start(['check', url, '--json'], { env })
  await until(() => printed.stdout.includes('answer-in-time'))
  interrupt()
  expect(await ended).toMatchObject({ code: 1, stderr: like(/^Interrupted: 2 .* 2 passed, 0 fail/m) })
})

it.each([
  ['no secret', 'http://localhost:1/', 'HOOKLINE_SECRET --secret-file', {}],
  ['another machine without --yes', 'http://example.invalid/', 'example.invalid --yes', env],
  ['a server that is not there', 'http://127.0.0.1:1/', 'ECONNREFUSED', env],
])('%s is wrong usage', async (_what, url, names, env) => {
  const { stderr, ...ran } = await hookline(['check', url], { env })
  expectUsage({ ...ran, stderr: stderr.replace(/^Sends .*\n/, '') }, ...names.split(' '))
})

/** Tests what all subcommands share: help, wrong usage, the Node they need, and that they add no package. */

import dns from 'node:dns/promises'
import { syncBuiltinESMExports } from 'node:module'
import { InvalidArgumentError } from 'commander'
import type { HooklineError } from 'hookline'
import { expect, it, onTestFinished, vi } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { confirmRemote, isLoopback, time } from '../src/arguments.ts'
import { createPlace, rewordError } from '../src/place.ts'
import { fail, requireNode, UsageError } from '../src/terminal.ts'
import { createFiles, expectUsage, hookline } from './command.ts'

it('the command adds no package to those that installing hookline brings', () => {
  expect(Object.keys(manifest.dependencies)).toEqual(['debug', 'fastify-plugin', 'raw-body', 'undici'])
  expect(manifest).not.toHaveProperty('optionalDependencies')
})

it.each(['check', 'queue', 'send'])('hookline help %s prints what --help prints', async (command) => {
  const help = await hookline([command, '--help'])
  expect(await hookline(['help', command])).toEqual(help)
  expect(help).toMatchObject({ code: 0, stdout: expect.stringContaining('Examples:') })
})

const TO = '--to http://localhost:1/'
it.each<[string, string]>([
  ['check', 'URL'],
  ['check localhost:3000/webhooks', 'http:// localhost:3000/webhooks'],
  ['check --list --only bytes-flaot', "--only 'bytes-flaot' bytes-float?"],
  ['check http://localhost:1/ --junit /no/x', '--junit /no/x'],
  ['send trakc --to http://localhost:1/', 'trakc track?'],
  [`send missing.json ${TO}`, 'missing.json'],
  [`send . ${TO}`, '. directory'],
  [`send text.json ${TO}`, 'JSON'],
  [`send object.json ${TO}`, '`type`'],
  [`send track ${TO} --set event.name=1`, '--set event.name'],
  [`send track ${TO} --set event`, "--set 'event'"],
  [`send track ${TO} --tamper all`, '--tamper bad-signature'],
  [`send track ${TO} --as customerio`, '--as customer.io?'],
  [`send track ${TO} --as segment-actions --method DELETE`, '--method DELETE POST, PUT, PATCH'],
  [`send track ${TO} --method PUT`, '--method PUT'],
  [`send track ${TO} --key-header x-key`, '--key-header'],
  [`send track ${TO} --as rudderstack --key-header a@b`, '--key-header'],
  ['send track --to localhost', 'localhost http://localhost'],
  ['listen --host 192.0.2.1', '192.0.2.1 --host'],
  ['listen --port 4001 --forward http://localhost:4001/x', '--forward 4001'],
  ['listen --store none/x.sqlite', 'none/x.sqlite ENOENT'],
  ['listen --forward localhost', 'localhost http://localhost.'],
  ['listen --fail 3y', "'3y'"],
  ['list --type trak', '--type track'],
  ['queue', 'LOCATION HOOKLINE_QUEUE'],
  ['queue x.sqlite --key-file hunter2', '--key-file'],
  ['queue x.sqlite ded', "'ded' dead?"],
  ...['show', 'show a b', 'backup', 'backup a b', 'counts a', 'dead a', 'history a', 'history --limit 0'].map(
    (words): [string, string] => [`queue x.sqlite ${words}`, `${words.split(' ')[0]}`],
  ),
  ['queue x.sqlite --ui', 'x.sqlite'],
  ['queue x.sqlite history --since yesterday', "--since 'yesterday'"],
  ['queue x.sqlite history --since 2026-02-30', "--since '2026-02-30'"],
  ['queue x.sqlite history --where order_id', "--where 'order_id' properties.order_id=42"],
  ['queue x.sqlite replay --type tracks', '--type track?'],
  ['queue mysql://bob:hunter2@localhost/x', 'LOCATION'],
  ['queue postgres:///hunter2', 'LOCATION postgres://'],
  ['queue dead redis://bob:hunter2@127.0.0.1:1', 'hookline queue LOCATION dead'],
  ['queue text.json', 'text.json SQLite'],
  [`replay redis://bob:hunter2@x last ${TO}`, 'hookline queue LOCATION replay'],
  [`replay text.json ${TO}`, 'hookline queue LOCATION replay'],
  ['types', 'SOURCE'],
  ['types none.json', 'SOURCE none.json'],
  ['types none.json --json', '--json --check'],
  ['types none.json --check --out x.ts', '--out --check'],
  ['types none.json --format zd', '--format zod?'],
])('hookline %s is wrong usage, and named: %s', async (words, names) => {
  const cwd = await createFiles({ 'text.json': 'no JSON, and no SQLite', 'object.json': {} }) // `listen` creates its store there.
  const ran = await hookline(words.split(' '), { cwd, env: { HOOKLINE_SECRET: 'hunter3' } })
  expectUsage(ran, ...names.split(' '))
  expect(ran.stderr).not.toMatch(/hunter|\bbob\b/)
})

it.each([
  ...['listen --port 0 65535', 'listen --ui 0 65535', 'demo --port 0 65535', 'queue x --ui 0 65535'],
  ...['queue x dead --limit 0 1000000', 'queue x replay --max-per-second 1 1000000', 'send x --count 1 1000000000'],
  ...['list --limit 1 10000', 'send x --rate 1 100000', 'send x --concurrency 1 1000'],
])('hookline %s: a number of this range', async (text) => {
  const words = text.split(' ')
  const [least, most] = words.splice(-2)
  expectUsage(await hookline([...words, `${Number(most) + 1}`]), `${words.at(-1)}`, ` ${least} to ${most}.`)
})

const FILTERED = 'history replay dead redrive drop'
const ACTIONS = `${FILTERED} counts show rewrite pause resume backup`
it.each([
  ...'since 1d,until 1d,type page,event x,user x,where a=1,handler x'.split(',').map((flag) => `${FILTERED} --${flag}`),
  ...[`${FILTERED} counts show rewrite --key-file x`, 'dead redrive drop --reason x', 'replay --id x'],
  ...['replay --max-per-second 1', 'replay redrive drop --dry-run', 'replay redrive drop rewrite --yes'],
  ...['history dead --limit 1', 'counts --ui'],
])('hookline queue: these actions take this option, and no others: %s', async (text) => {
  const [actions, flag = ''] = text.split(' --')
  const taken = []
  for (const action of ACTIONS.split(' ')) {
    const id = action === 'show' || action === 'backup' ? ['id'] : []
    const { stderr } = await hookline(['queue', 'none.sqlite', action, ...id, ...`--${flag}`.split(' ')])
    if (!stderr.includes(`, not to ${action}.`)) taken.push(action)
  }
  expect(taken.join(' ')).toBe(actions)
})

it('a time is a date, or an age', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 10, 24), toFake: ['Date'] })
  onTestFinished(() => void vi.useRealTimers())
  const ages = { '1s': 1, '2m': 120, '3h': 10_800, '4d': 345_600, '999999w': 604_799_395_200 }
  for (const [age, seconds] of Object.entries(ages)) expect(Date.now() - time(age).getTime()).toBe(seconds * 1_000)
  expect(time('2026-11-20')).toEqual(new Date(Date.UTC(2026, 10, 20)))
  const wrong = ['1y', '1234567d', 'd', '2026', '2026-1-1', '2026-11-20T25:00Z']
  for (const text of wrong) expect(() => time(text)).toThrow(InvalidArgumentError)
})

it('this machine is told by its names and addresses, and by what they lead to', async () => {
  const others = ['localhost.example', 'mylocalhost', '127.0.0.1.example', '128.0.0.1', '[::2]', '0.0.0.0']
  const hosts = ['localhost', 'app.localhost', '127.1.2.3', '[::1]', ...others]
  expect(hosts.filter((host) => isLoopback(new URL(`http://${host}/`)))).toEqual(hosts.slice(0, 4))
  const lookup = vi.spyOn(dns, 'lookup').mockResolvedValue([{ address: '192.0.2.1', family: 4 }] as never)
  syncBuiltinESMExports()
  const confirmed = confirmRemote(new URL('http://app.localhost:1/'), 'it')
  lookup.mockRestore()
  syncBuiltinESMExports()
  await expect(confirmed).rejects.toThrow('app.localhost:1')
})

it.each(['', 'express', 'hookline', '*'])('an unexpected error has its stack for DEBUG=%s', (debug) => {
  vi.stubEnv('DEBUG', debug)
  const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
  for (const error of [new RangeError('no \u001b'), new UsageError('no')]) fail(error)
  const { calls } = write.mock
  vi.unstubAllEnvs()
  write.mockRestore()
  process.exitCode = 0
  const stack = expect.stringContaining('error: RangeError: no \u001b\n    at ')
  expect(calls).toEqual([[/hookline|\*/.test(debug) ? stack : 'error: no \\u{1b}\n'], ['error: no\n']])
})

it('of a location and its errors, no user, password or query is shown', () => {
  const redis = { 'redis://bob:hunter2@h:1/0?x=1': 'redis://h:1/0', 'rediss://h/a%20b': 'rediss://h' }
  for (const [location, shown] of Object.entries({ ...redis, 'postgres://bob:hunter2@h/db': 'postgres://h/db' })) {
    const texts = ['no password for user "bob"', 'role "bob" is missing', 'Queue any cannot use it', 'Queue any is old']
    const errors = texts.map((message) => rewordError({ message } as HooklineError, createPlace(location, {})).message)
    const told = ['no password for user of LOCATION', 'role of LOCATION is missing', 'The command cannot use it']
    expect([createPlace(location, {}).shown, ...errors]).toEqual([shown, ...told, `${shown} is old`])
  }
})

it('a Node that is older than the package asks for is wrong usage', () => {
  const { node } = process.versions
  const [major = '', minor = ''] = node.split('.')
  for (const older of [node, '9.99']) expect(() => requireNode(older)).not.toThrow()
  for (const newer of [`${major}.${Number(minor) + 1}`, '100.0']) {
    expect(() => requireNode(newer)).toThrow(UsageError)
    expect(() => requireNode(newer)).toThrow(new RegExp(`${newer} .*${node}`))
  }
})

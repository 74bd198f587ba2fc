/** Tests what all subcommands share: help, wrong usage, the Node they need, and that they add no package. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import manifest from '../../../package.json' with { type: 'json' }
import { requireNode, UsageError } from '../src/terminal.ts'
import { createFolder, expectUsage, hookline } from './command.ts'

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
it.each([
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
  ['queue x.sqlite ded', "'ded' dead?"],
  ['queue x.sqlite show', 'show'],
  ['queue x.sqlite drop --limit 5 --yes', '--limit drop'],
  ['queue x.sqlite dead --ui', '--ui dead'],
  ['queue x.sqlite --ui', 'x.sqlite'],
  ['queue x.sqlite history --since yesterday', "--since 'yesterday'"],
  ['queue x.sqlite history --since 2026-02-30', "--since '2026-02-30'"],
  ['queue x.sqlite history --reason x', '--reason history'],
  ['queue x.sqlite history --where order_id', "--where 'order_id' properties.order_id=42"],
  ['queue x.sqlite replay --type tracks', '--type track?'],
  ['queue mysql://bob:hunter2@localhost/x', 'LOCATION'],
  ['queue postgres:///hunter2', 'LOCATION postgres://'],
  ['queue dead redis://bob:hunter2@127.0.0.1:1', 'hookline queue LOCATION dead'],
  ['queue text.json', 'text.json SQLite'],
  ['types', 'SOURCE'],
  ['types none.json', 'SOURCE none.json'],
  ['types none.json --json', '--json --check'],
  ['types none.json --check --out x.ts', '--out --check'],
  ['types none.json --format zd', '--format zod?'],
])('hookline %s is wrong usage, and named: %s', async (words, names) => {
  const cwd = await createFolder() // `listen` creates its store there.
  await writeFile(join(cwd, 'text.json'), 'no JSON, and no SQLite')
  await writeFile(join(cwd, 'object.json'), '{}')

  const ran = await hookline(words.split(' '), { cwd, env: { HOOKLINE_SECRET: 'hunter3' } })

  expectUsage(ran, ...names.split(' '))
  expect(ran.stderr).not.toMatch(/hunter|\bbob\b/)
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

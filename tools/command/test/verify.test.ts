/** `hookline verify`: how it exits, what its output holds, and what it never prints. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sign } from 'hookline'
import { afterAll, expect, it } from 'vitest'
import { needs } from '../../../test/support/needs.ts'
import { createFolder, expectUsage, hookline, type Ran, type Running } from './command.ts'

const SECRET = 'correct horse battery staple '
const TEXT = '{"type":"track","userId":"u1","event":"Order Completed"}'
const RIGHT = sign(TEXT, SECRET)
const BINARY = Buffer.from([0, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0xff, 0xfe])
const BODY = ['--body', 'body.json']
const SIGNED = [...BODY, '--signature', RIGHT]
const folder = await createFolder(afterAll)
const texts = { 'body.json': TEXT, 'secret.txt': `${SECRET}\r\n`, 'empty.txt': '\n' }
const files = { ...texts, 'latin1.txt': Buffer.from('naïve', 'latin1'), binary: BINARY }
for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)

type Options = Running & { readonly input?: string }

/** No run prints the secret, a stack, or the right signature where it is not asked for. */
async function verify(args: readonly string[], options: Options = {}): Promise<Ran> {
  const ran = await hookline(['verify', ...args], { cwd: folder, env: { HOOKLINE_SECRET: SECRET }, ...options })
  const printed = ran.stdout + ran.stderr
  expect(printed).not.toContain(SECRET.slice(0, 7))
  expect(printed).not.toMatch(/^ +at /m)
  if (!args.includes('--expected')) expect(printed).not.toContain(RIGHT)
  return ran
}

it.each<[string, string[], Options]>([
  ['the secret of the environment', SIGNED, {}],
  ['the secret of a file, without its line break', [...SIGNED, '--secret-file', 'secret.txt'], { env: {} }],
  ['the secret of the arguments', [...SIGNED, '--secret', SECRET], { env: {} }],
  ['a body from stdin', ['--body', '-', '--signature', RIGHT], { input: TEXT }],
  ['bytes that are no text', ['--body', 'binary', '--signature', sign(BINARY, SECRET)], {}],
])('a right signature ends with 0: %s', async (_name, args, options) => {
  const { code, stderr } = await verify(args, options)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
})

const written = JSON.stringify(JSON.parse(TEXT), null, 2)
it.each([
  ['explained', sign(`${TEXT}\n`, SECRET), ['line break']],
  ['explained by three causes', `sha1=${sign(written, `${SECRET}\n`)}`, ['\n1. ', '`sha1=`', '\n2. ', '\n3. ']],
  ['not explained, and what was tried is listed', sign(TEXT, 'another'), ['\nTried:\n- ', 'JavaScript', 'Python']],
])('a wrong signature ends with 1, and is %s', async (_how, signature, texts) => {
  const { code, stdout, stderr } = await verify([...BODY, '--signature', signature])
  expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  for (const text of texts) expect(stdout).toContain(text)
})

it('nothing of a body or a signature reaches the terminal as it is', async () => {
  const { code, stdout } = await verify(['--body', 'binary', '--signature', '\u001b[31m'])
  expect([code, stdout]).toEqual([1, expect.not.stringContaining('\u001b')])
})

it('the right signature is printed with --expected only', async () => {
  const args = [...BODY, '--expected', '--signature']
  expect((await verify([...args, 'x'])).stdout).toContain(RIGHT)
  expect((await verify([...args, RIGHT])).stdout).toContain(RIGHT)
  expect(JSON.parse((await verify([...args, 'x', '--json'])).stdout).expected).toBe(RIGHT)
})

it('--json prints the explanation on one line', async () => {
  const { code, stdout } = await verify([...BODY, '--json', '--signature', `"${RIGHT}"`])
  const found = { verdict: 'explained', causes: [{ code: 'signature_quoted' }], tried: [] }
  expect([code, JSON.parse(stdout.replaceAll(RIGHT, ''))]).toMatchObject([1, found])
})

const SIGN = SIGNED.join(' ')
it.each<[string, string, env?: Running['env']]>([
  [SIGN, 'HOOKLINE_SECRET --secret-file --secret', {}],
  [`${SIGN} --secret x --secret-file x`, '--secret --secret-file'],
  [SIGN, 'HOOKLINE_SECRET empty', { HOOKLINE_SECRET: '' }],
  [`${SIGN} --secret-file empty.txt`, '--secret-file empty'],
  [`${SIGN} --secret-file latin1.txt`, '--secret-file UTF-8'],
  [`${SIGN} --secret-file ${'correct'.repeat(100)}`, '--secret-file'], // No path is as long.
  ['--body body.json', '--signature'],
  [`${SIGN} --expcted`, '--expcted --expected'],
  [`${SIGN} --secrt=${SECRET.replaceAll(' ', '-')}`, '--secrt'],
  [`${SIGN} --secret x ${SECRET.replaceAll(' ', '-')}`, 'verify'],
])('%s is wrong usage, and named: %s', async (words, names, env) => {
  expectUsage(await verify(words.split(' '), env && { env }), ...names.split(' '))
})

it('a body without an end is wrong usage', needs('POSIX'), async () => {
  expectUsage(await verify(['--body', '/dev/zero', '--signature', 'x']), '--body', '/dev/zero')
})

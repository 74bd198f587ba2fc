/** `hookline verify`: what it prints, how it exits, and what it never prints. */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sign } from '../../../src/protocol/signature.ts'
import { needs } from '../../../test/support/needs.ts'
import { hookline, type Ran, type Running, start } from './command.ts'

const SECRET = 'correct horse battery staple'
const body = '{"type":"track","userId":"u1","event":"Order Completed"}'
const RIGHT = sign(body, SECRET)
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hookline-verify-'))
  await writeFile(join(folder, 'body.json'), body)
  await writeFile(join(folder, 'secret.txt'), `${SECRET}\r\n`)
  await writeFile(join(folder, 'empty.txt'), '\n')
  await writeFile(join(folder, 'latin1.txt'), Buffer.from('naïve', 'latin1'))
  await writeFile(join(folder, 'binary'), Buffer.from([0, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0xff, 0xfe]))
})
afterAll(() => rm(folder, { recursive: true, maxRetries: 9 }))

/** Verifies body.json. No run prints the secret or a stack. */
async function verify(args: readonly string[], options: Running & { input?: string } = {}): Promise<Ran> {
  const ran = await hookline(['verify', ...args], { cwd: folder, env: { HOOKLINE_SECRET: SECRET }, ...options })
  expect(ran.stdout + ran.stderr).not.toContain(SECRET.slice(0, 7))
  expect(ran.stdout + ran.stderr).not.toMatch(/^ +at /m)
  if (!args.includes('--expected')) expect(ran.stdout + ran.stderr).not.toContain(RIGHT)
  return ran
}
const BODY = ['--body', 'body.json']

describe('a right signature', () => {
  const matches = { code: 0, stdout: 'The signature matches.\n', stderr: '' }
  it.each<[string, string[], Running & { input?: string }]>([
    ['with the secret of the environment', BODY, {}],
    ['with the secret of a file, without its line break', [...BODY, '--secret-file', 'secret.txt'], { env: {} }],
    ['with the secret of the arguments', [...BODY, '--secret', SECRET], { env: {} }],
    ['of stdin', ['--body', '-'], { input: body }],
  ])('%s', async (_name, args, options) => {
    expect(await verify([...args, '--signature', RIGHT], options)).toEqual(matches)
  })

  it('of bytes that are no text', async () => {
    const signature = sign(Buffer.from([0, 0x1b, 0x5b, 0x33, 0x31, 0x6d, 0xff, 0xfe]), SECRET)
    expect(await verify(['--body', 'binary', '--signature', signature])).toEqual(matches)
  })
})

describe('a wrong signature', () => {
  it('is explained in a sentence', async () => {
    const { code, stdout, stderr } = await verify([...BODY, '--signature', sign(`${body}\n`, SECRET)])
    expect(stdout).toMatch(
      /^The signature does not match\.\nThe body must be the bytes that were signed\. Got a body without the line break .*\n$/,
    )
    expect({ code, stderr }).toEqual({ code: 1, stderr: '' })
  })

  it('is explained in several sentences', async () => {
    const signature = `sha1=${sign(JSON.stringify(JSON.parse(body), null, 2), `${SECRET}\n`)}`
    const { code, stdout } = await verify([...BODY, '--signature', signature])
    expect(stdout.replace(/(Got [^.:]+)[.:].*/g, '$1').split('\n')).toEqual([
      'The signature does not match. 3 things are wrong:',
      '1. The signature must be 40 hexadecimal digits alone. Got a label beside it, such as `sha1=`',
      '2. The secret must be the one that signed. Got a secret without a line break that the signer had at its end',
      '3. The body must be the bytes that were signed. Got the same JSON, written differently',
      '',
    ])
    expect(code).toBe(1)
  })

  it('that nothing explains: it says so, and what was tried', async () => {
    const { code, stdout } = await verify([...BODY, '--signature', `sha1=${sign(body, 'another')}`])
    expect(stdout).toMatch(/^The signature does not match, and nothing that was tried explains it\. .*\n/)
    expect(stdout).toContain('\nThe signature must be 40 hexadecimal digits alone. Got a label beside it')
    expect(stdout).toMatch(/\nTried:\n(- .*\n){6}$/)
    expect(stdout).toContain('\n- the JSON as JavaScript, Python, PHP, Go, Ruby and Rails write it')
    expect(stdout).not.toContain('first element') // The body is no list.
    expect(code).toBe(1)
  })

  it('of bytes that are no text: nothing of them reaches the terminal', async () => {
    const { code, stdout } = await verify(['--body', 'binary', '--signature', '\u001b[31m'])
    expect(stdout).not.toContain('\u001b')
    expect(code).toBe(1)
  })

  it('of nothing: it says that the body is empty', async () => {
    const args = ['--body', '-', '--signature', RIGHT]
    expect(await verify(args)).toMatchObject({ code: 1, stderr: 'The body is empty.\n' })
  })
})

it('prints the right signature with --expected only', async () => {
  const args = [...BODY, '--expected', '--signature']
  expect((await verify([...args, 'x'])).stdout).toMatch(new RegExp(`\n\nExpected: ${RIGHT}\n$`))
  expect((await verify([...args, RIGHT])).stdout).toBe(`The signature matches.\n\nExpected: ${RIGHT}\n`)
  expect(JSON.parse((await verify([...args, 'x', '--json'])).stdout).expected).toBe(RIGHT)
})

it('prints the explanation as JSON, on one line', async () => {
  const { code, stdout } = await verify([...BODY, '--json', '--signature', `"${RIGHT}"`])
  expect(stdout.split('\n')).toHaveLength(2)
  const causes = [{ code: 'signature_quoted' }]
  expect(JSON.parse(stdout.replaceAll(RIGHT, ''))).toMatchObject({ verdict: 'explained', causes, tried: [] })
  expect(code).toBe(1)
})

describe('wrong usage is one sentence, and exit code 2', () => {
  it('a body without an end', needs('POSIX'), async () => {
    const { code, stderr } = await verify(['--body', '/dev/zero', '--signature', 'x'])
    expect([code, stderr]).toEqual([2, 'error: --body must have at most 2000000 bytes. /dev/zero has more.\n'])
  })

  const SIGNED = [...BODY, '--signature', RIGHT]
  it.each<[string[], string, Running?]>([
    [['--body', 'none', '--signature', 'x'], '--body: none cannot be read: it does not exist.'],
    [SIGNED, 'A secret is required. Set HOOKLINE_SECRET, or pass --secret-file FILE or --secret TEXT.', { env: {} }],
    [[...SIGNED, '--secret', 'x', '--secret-file', 'x'], 'Pass --secret or --secret-file, not both.'],
    [SIGNED, 'HOOKLINE_SECRET is empty. Pass the shared secret of the endpoint.', { env: { HOOKLINE_SECRET: '' } }],
    [[...SIGNED, '--secret', ''], '--secret is empty. Pass the shared secret of the endpoint.'],
    [[...SIGNED, '--secret-file', 'empty.txt'], '--secret-file is empty. Pass the shared secret of the endpoint.'],
    [[...SIGNED, '--secret-file', 'none'], '--secret-file: the file cannot be read: it does not exist.'],
    [[...SIGNED, '--secret-file', 'latin1.txt'], '--secret-file: the file must be text in UTF-8.'],
    [BODY, "required option '--signature <text>' not specified"],
    [[...SIGNED, '--expcted'], "unknown option '--expcted' (Did you mean --expected?)"],
    [
      ['--bdy', 'x', '--signature', 'y'],
      "required option '--body <file>' not specified (Got --bdy. Did you mean --body?)",
    ],
    [[...SIGNED, `--secrt=${SECRET}`], "unknown option '--secrt'"],
    [[...SIGNED, '--secret', 'x', SECRET], "too many arguments for 'verify'. Expected 0 arguments but got 1."],
  ])('%j', async (args, sentence, options) => {
    const { code, stdout, stderr } = await verify(args, options)
    expect(stderr.replace('Run the command with --help to see its options.\n', '')).toBe(`error: ${sentence}\n`)
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  })
})

describe('on a terminal', needs('util-linux'), () => {
  const args = [...BODY, '--signature', 'x']
  it('the verdict is coloured, and not with NO_COLOR', async () => {
    const env = { HOOKLINE_SECRET: SECRET }
    expect((await verify(args, { isTerminal: true })).stdout).toContain(
      '\u001b[31mThe signature does not match.\u001b[39m',
    )
    const plain = await verify(args, { isTerminal: true, env: { ...env, NO_COLOR: '1' } })
    expect(plain.stdout).not.toContain('\u001b')
    expect(plain.code).toBe(1)
  })

  it('says that it reads from there', async () => {
    const running = { env: { HOOKLINE_SECRET: SECRET }, isTerminal: true }
    const { child, ended } = await start(['verify', '--body', '-', '--signature', sign('{}\n', SECRET)], running)
    child.stdin?.write('{}\n\u0004')
    const { code, stdout } = await ended
    expect(stdout).toContain('Reading from the terminal. End with Ctrl-D.')
    expect(stdout).toContain('The signature matches.')
    expect(code).toBe(0)
  })
})

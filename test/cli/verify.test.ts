/** `hookline verify`. */

import { expect, it } from 'vitest'
import { sign } from '../../src/message/signature.ts'
import { hookline } from './command.ts'

const body = '{"type":"track","userId":"u1","event":"Order Completed"}'

it('says that a signature is right', async () => {
  const args = ['verify', '--body', '-', '--signature', sign(body, 'a secret'), '--secret', 'a secret']
  expect(await hookline(args, { input: body })).toEqual({ code: 0, stdout: 'The signature matches.\n', stderr: '' })
})

it('says what broke a signature', async () => {
  const args = ['verify', '--body', '-', '--signature', sign(body, 'a secret'), '--secret', 'a secret']
  const { code, stdout } = await hookline(args, { input: `${body}\n` })
  expect(stdout).toMatch(/^The body must be the bytes that were signed. Got a line break at its end/)
  expect(code).toBe(1)
})

it('colours what it prints on a terminal, and not with NO_COLOR', async () => {
  const args = ['verify', '--body', 'package.json', '--signature', 'x', '--secret', 'a secret']
  expect((await hookline(args, { isTerminal: true })).stdout).toContain('\u001b[31m')
  expect((await hookline(args, { isTerminal: true, env: { NO_COLOR: '1' } })).stdout).not.toContain('\u001b[')
})

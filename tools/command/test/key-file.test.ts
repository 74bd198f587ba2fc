/** `hookline queue` on a queue that is encrypted: with the file of its keys, and without. */

import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, test } from 'vitest'
import { sqliteQueue } from '../../../src/queues-sqlite.ts'
import { createReceiver } from '../../../src/receive/create-receiver.ts'
import { fixtures } from '../../../src/testing/fixtures.ts'
import { deliver, secret } from '../../../test/support/receive.ts'
import { createFiles, createFolder, expectUsage, hookline, jsonLines, like } from './command.ts'

const [k1, k2] = [randomBytes(32), randomBytes(32)]
const lineOf = (id: string, key: Buffer): string => `${id} ${key.toString('base64')}\n`

describe('an encrypted inbox', () => {
  let [folder, path, keyFile] = ['', '', '']
  beforeEach(async () => {
    folder = await createFolder()
    path = join(folder, 'inbox.sqlite')
    keyFile = await writeKeys('keys', lineOf('k1', k1))
    const queue = sqliteQueue({ path, name: 'inbox' })
    const encryption = { keys: [{ id: 'k1', key: k1 }] }
    const inbox = { queue, retries: [], history: { maxAgeMs: 3_600_000 }, encryption }
    const receiver = createReceiver({ secret, inbox, onError() {} })
    receiver.on('page', () => Promise.reject(new Error('no stock')), { name: 'crm' }).on('track', () => {})
    for (const message of [fixtures.track, fixtures.page]) await deliver(receiver, message)
    receiver.start()
    await queue.drain()
    await receiver.close()
  })

  async function writeKeys(name: string, text: string): Promise<string> {
    await writeFile(join(folder, name), text)
    return join(folder, name)
  }

  const run = (...action: string[]) => hookline(['queue', path, ...action])

  it('is read with the keys: its dead letters, each of them, and its history', async () => {
    const withKeys = (...action: string[]) => run(...action, '--key-file', keyFile)
    const [letter] = jsonLines<{ readonly id: string }>((await withKeys('dead', '--json')).stdout)
    expect(letter).toMatchObject({ reason: 'handler_failed', error: expect.stringContaining('no stock'), type: 'page' })
    expect((await withKeys('show', letter?.id ?? '')).stdout).toContain('"userId": "user-1"')
    expect((await withKeys('history')).stdout).toContain('track Order Completed')
    const replay = await withKeys('replay', '--event', 'Order Completed', '--dry-run')
    expect(replay.stdout).toContain('Would replay 1 message')
    expect((await withKeys('redrive', '--user', 'user-1', '--dry-run')).stdout).toContain('1 handler_failed')
  })

  it('shows ids, times and reasons without them, and says so', async () => {
    const [letter] = jsonLines<{ readonly id: string }>((await run('dead', '--json')).stdout)
    expect(letter).toMatchObject({ reason: 'handler_failed', failedAt: expect.any(String), sealedWith: 'k1' })
    expect((await run('counts')).stdout).toContain('1: 1 handler_failed')
    for (const action of [['dead'], ['history'], ['show', letter?.id ?? '']]) {
      const { code, stdout } = await run(...action)
      expect({ code, stdout }).toEqual({ code: 0, stdout: like(/encrypted with key k1: see --key-file/) })
      expect(stdout).not.toContain('user-1')
    }
    expect((await run('redrive', '--reason', 'handler_failed', '--dry-run')).stdout).toContain('Would redrive 1')
  })

  it('is encrypted anew with the first key of the file, but for what is under another key', async () => {
    const both = await writeKeys('both', `${lineOf('k2', k2)}\n${lineOf('k1', k1)}`)

    const rewritten = await run('rewrite', '--key-file', both, '--yes')
    const again = JSON.parse((await run('rewrite', '--key-file', both, '--yes', '--json')).stdout)

    expect(rewritten).toMatchObject({ code: 0, stdout: 'Re-encrypted: 2 messages.\n' })
    expect(again).toEqual({ queue: 'inbox', action: 'rewrite', key: 'k2', done: 0, left: {} })
    const { stdout } = await run('history', '--key-file', await writeKeys('new', lineOf('k2', k2)))
    expect(stdout).toContain('track Order Completed')
    const receiver = createReceiver({ secret, inbox: sqliteQueue({ path, name: 'inbox' }) })
    await deliver(receiver, fixtures.group)
    await receiver.close()
    expect((await run('rewrite', '--key-file', both, '--yes')).stderr).toContain('1 unencrypted')
  })

  it('is not encrypted anew without a key, nor without an answer', async () => {
    expectUsage(await run('rewrite', '--yes'), '--key-file')
    expectUsage(await run('rewrite', '--key-file', keyFile), '--yes')
    expectUsage(await run('rewrite', 'all', '--key-file', keyFile), 'rewrite')
    expectUsage(await run('backup', join(folder, 'copy'), '--key-file', keyFile), '--key-file')
  })
})

test.each([
  ['', 'at least one key'],
  ['k1\n', 'line 1'],
  [`${lineOf('k1', k1)}k2 ${k2.toString('hex')}\n`, 'line 2'],
  [`${lineOf('k1', k1)}k2 ${randomBytes(31).toString('base64')}\n`, 'line 2'],
  [lineOf('k1', k1) + lineOf('k1', k2), 'a different id'],
  [lineOf('x'.repeat(41), k1), 'line 1'],
])('a key file must have keys: %#', async (text, rule) => {
  const file = join(await createFiles({ keys: text }), 'keys')
  const ran = await hookline(['queue', 'inbox.sqlite', '--key-file', file])
  expectUsage(ran, '--key-file', rule)
  for (const key of [k1, k2]) {
    expect(ran.stderr).not.toContain(key.toString('hex'))
    expect(ran.stderr).not.toContain(key.toString('base64').slice(0, 9))
  }
})

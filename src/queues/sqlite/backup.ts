/** A backup of a file in use. */

import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { MessagePort, Worker } from 'node:worker_threads'
import { HooklineError } from '../../message/error.ts'
import { requireText } from '../../options/checks.ts'
import { cannotUse } from '../../sqlite/advice.ts'
import { alone } from './stored.ts'

/** What the thread gets that writes a backup: the path of the file, and of a file that is empty. */
export interface BackupSettings {
  readonly isHooklineThread: true
  readonly name: string
  readonly path: string
  readonly backupTo: string
}

/** Writes a backup in a thread of its own, so that neither this one nor that of the queues waits for it. */
export async function backUp(
  { name, path }: { readonly name: string; readonly path: string },
  to: string,
  startThread: (settings: BackupSettings) => Worker,
): Promise<void> {
  requireText('path', to, 'backup.sqlite')
  const backupTo = resolve(to)
  const file = await open(backupTo, 'wx', 0o600).catch((cause: NodeJS.ErrnoException) => {
    const reason = cause.code === 'EEXIST' ? 'there is a file already' : 'it cannot be created'
    const advice = 'Pass the path of a new file, in a folder that this process may write to.'
    const message = `Queue ${name} cannot write a backup to ${backupTo}: ${reason}. Got ${cause.code}. ${advice}`
    throw new HooklineError('queue_unavailable', message, { cause })
  })
  try {
    await new Promise((done, fail) => {
      const refuse = (message: string) => fail(new HooklineError('queue_unavailable', message))
      const thread = startThread({ isHooklineThread: true, name, path, backupTo })
      thread.once('message', refuse).once('error', fail).once('exit', done)
    })
    await file.sync()
  } catch (error) {
    await rm(backupTo, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/** Writes the backup, in the thread; tells the port why it cannot. */
export function writeBackup(port: MessagePort, { name, path, backupTo }: BackupSettings): void {
  try {
    alone(path, (database) => database.prepare('VACUUM INTO ?').run(backupTo))
  } catch (error) {
    port.postMessage(cannotUse(`Queue ${name}`, path, error))
  }
}

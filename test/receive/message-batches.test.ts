import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { memoryQueue } from '../../src/queues-memory.ts'
import { sqliteQueue } from '../../src/queues-sqlite.ts'
import { testMessageBatches } from '../contracts/message-batches.ts'

testMessageBatches('memory', () => memoryQueue(), {}, true)
testMessageBatches('a SQLite file', createFile, {}, true)

function createFile() {
  const directory = mkdtempSync(join(tmpdir(), 'hookline-message-batches-'))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true, maxRetries: 9 }))
  return sqliteQueue({ path: join(directory, 'inbox.sqlite'), name: 'inbox' })
}

/** The debug log: what it says, line by line ("Go client library", What the service does 6). */

import { format, stripVTControlCharacters } from 'node:util'
import debug from 'debug'
import { expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { log } from '../../src/collect/client-report.ts'
import { numbered, setUp } from './dispatcher.ts'

it('enqueued, flushed, answered, retried', async () => {
  const lines: string[] = []
  const keep = (line: string) => lines.push(line.replace(/.*analytics (.*?)( \+\d+m?s)?$/, '$1'))
  log.log = (...args) => keep(stripVTControlCharacters(format(...args)))
  log.enabled = true
  onTestFinished(() => void Object.assign(log, { enabled: false, log: debug.log }))
  const { client, clock } = setUp([503, new Error('the write-key'), 'hang'], { flushAt: 2 })
  client.track({ ...numbered(0), messageId: 'm' })
  client.identify({ userId: 'user-1', messageId: 'm' })
  await clock.advance(20_000)
  expect(lines).toEqual([
    `track: enqueued, ${162 + manifest.version.length} bytes`,
    `identify: enqueued, ${147 + manifest.version.length} bytes`,
    `batch 1: flushed, calls 2, bytes ${358 + 2 * manifest.version.length}`,
    'batch 1: attempt 1: status 503',
    'batch 1: retrying in 1000 ms',
    'batch 1: attempt 2: a network error',
    'batch 1: retrying in 2000 ms',
    'batch 1: attempt 3: a timeout',
    'batch 1: retrying in 4000 ms',
    'batch 1: attempt 4: status 200',
  ])
})

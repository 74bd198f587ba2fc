/** The debug log: what it says, line by line ("Go client library", What the service does 6). */

import { format, stripVTControlCharacters } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { log } from '../../src/collect/client-report.ts'
import { numbered, setUp } from './dispatcher.ts'

let lines: string[] = []

beforeEach(() => {
  lines = []
  log.enabled = true
  log.log = (...args) =>
    lines.push(stripVTControlCharacters(format(...args)).replace(/.*analytics (.*?)( \+\d+m?s)?$/, '$1'))
})
afterEach(() => {
  log.enabled = false
})

it('enqueued, flushed, answered, retried', async () => {
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

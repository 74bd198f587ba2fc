/** What an inspector keeps of the traffic of real parts. */

import { describe, expect, it } from 'vitest'
import { createJournal } from '../../src/inspector/journal.ts'
import type { SeriesRecorder } from '../../src/inspector/series.ts'
import { watchReceiver } from '../../src/inspector/watch-receiver.ts'
import { createLog } from '../../src/options/log.ts'
import { createReceiver } from '../../src/receiver/receiver.ts'
import { fixtures } from '../../src/testing/fixtures.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'
import { signedRequest } from '../../src/testing/signed-request.ts'
import { systemClock } from '../../src/time/clock.ts'

const keep = { messages: 2_000, bytes: 64_000_000, refused: 200, refusedBytes: 4_000_000 }
const log = createLog(undefined, () => {}, systemClock)
const secret = 'inspected'
const noSeries: SeriesRecorder = {
  done: () => {},
  failed: () => {},
  depth: () => {},
  read: () => {
    throw new Error('It is not read.')
  },
}

describe('a receiver without an inbox', () => {
  it('a message is done: arrived, checked, handled, answered', async () => {
    const clock = manualClock()
    const journal = createJournal(keep, clock, log)
    const receiver = createReceiver({ secret, clock, onError: () => {} }).on('track', function save() {})
    watchReceiver('shop', receiver, journal, noSeries)
    const { body, headers } = signedRequest(fixtures.track, secret)
    await receiver.receive(Buffer.from(body), headers)
    const { rows } = journal.changesSince(undefined)
    expect(rows).toMatchObject([{ state: 'done', type: 'track', status: 200, attempts: 1, part: 'shop' }])
    const detail = journal.detail(rows[0]?.id ?? 0)
    expect(detail?.body.text).toBe(body)
    expect(detail?.steps.map(({ what }) => what)).toEqual(['arrived', 'checked', 'handled', 'answered'])
  })

  it('a refused request is a row of its own, which can be explained', async () => {
    const clock = manualClock()
    const journal = createJournal(keep, clock, log)
    const receiver = createReceiver({ secret, clock, onError: () => {} }).on('track', () => {})
    watchReceiver('shop', receiver, journal, noSeries)
    const { body, headers } = signedRequest(fixtures.track, 'another')
    await receiver.receive(Buffer.from(body), { ...headers, authorization: 'Basic c2VjcmV0' })
    await receiver.receive(Buffer.from(body), headers)
    const { rows } = journal.changesSince(undefined)
    expect(rows).toMatchObject([
      { id: 2, state: 'refused', status: 401, code: 'signature_mismatch' },
      { id: 1, state: 'refused', status: 401, code: 'signature_mismatch' },
    ])
    const detail = journal.detail(1)
    expect(detail).toMatchObject({ canExplain: true, request: { method: 'POST' } })
    expect(detail?.request?.headers).toContainEqual(['authorization', null])
    expect(Buffer.from(journal.refused(1)?.bytes ?? []).toString()).toBe(body)
  })
})

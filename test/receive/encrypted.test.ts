/** The tests of an inbox again, with everything that it stores encrypted. */

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { encryptInboxes } from '../support/inbox.ts'

beforeAll(() => encryptInboxes({ keys: [{ id: 'k1', key: randomBytes(32) }] }))
afterAll(() => encryptInboxes())

for (const name of ['close', 'forget', 'history', 'in-turn', 'inbox', 'named-handlers']) {
  await import(`./${name}.test.ts?encrypted`)
}

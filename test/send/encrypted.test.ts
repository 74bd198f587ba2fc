/** The tests of a destination again, with everything that it stores encrypted. */

import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { encryptDestinations } from './set-up.ts'

beforeAll(() => encryptDestinations({ keys: [{ id: 'k1', key: randomBytes(32) }] }))
afterAll(() => encryptDestinations())

for (const name of ['destination', 'functions', 'outage']) await import(`./${name}.test.ts?encrypted`)

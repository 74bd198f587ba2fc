/**
 * Claims keys in a process of its own: opens the store, prints `open`, and begins when a line comes in. Confirms and
 * prints the keys it got, then `done`, and stays.
 */

import { once } from 'node:events'
import { sqliteDedupe } from '../../../src/dedupe/sqlite/index.ts'

const [, , path = '', keys = '0', copies = '0'] = process.argv
const dedupe = sqliteDedupe({ path, timeoutMs: 5000 })
console.log('open')
await once(process.stdin, 'data')
for (let key = 0; key < Number(keys); key += 1) {
  for (let copy = 0; copy < Number(copies); copy += 1) {
    let claim: ReturnType<typeof dedupe.claim>
    try {
      claim = dedupe.claim(`${key}`)
    } catch (error) {
      console.log('failed', (error as { code?: string }).code)
      continue
    }
    if (typeof claim === 'string' || claim instanceof Promise) continue
    console.log('got', key)
    claim.confirm()
  }
}
console.log('done')

/**
 * Posts bodies that would inflate to far more than 500 KB to a collector. Prints the outcome of each kind, and by how much the process
 * grew at its peak. In a process of its own: peaks never fall.
 */

import { constants, deflateRawSync, gzipSync } from 'node:zlib'
import { BATCH_LIMIT } from '../../../src/protocol/limits.ts'
import { basic, setUpCollector, writeKey } from '../../support/collect.ts'

const MB = 1024 * 1024

const member = gzipSync(Buffer.alloc(16 * MB))
const block = deflateRawSync(Buffer.alloc(16 * MB), { finishFlush: constants.Z_FULL_FLUSH }) // May be repeated in a stream.
const heads = { gzip: Buffer.from('1f8b0800000000000003', 'hex'), deflate: Buffer.from('789c', 'hex') }

const repeat = (bytes: Buffer, times: number): Buffer[] => Array.from({ length: times }, () => bytes)
const stream = (coding: keyof typeof heads): Buffer => Buffer.concat([heads[coding], ...repeat(block, 30)])
const nested = (times: number): Buffer => gzipSync(Buffer.concat(repeat(member, times)))

const bombs: Readonly<Record<string, readonly [coding: string, bytes: Buffer]>> = {
  '480 MB in 480 KB': ['gzip', stream('gzip')],
  '480 MB in 480 KB, deflate': ['deflate', stream('deflate')],
  '480 MB in 480 KB, many members': ['gzip', Buffer.concat(repeat(member, 30))],
  '1 GB in 1 MB in 2 KB': ['gzip', nested(64)],
  '256 MB in 256 KB in 1 KB': ['gzip', nested(16)],
}

const { post } = setUpCollector()
const outcomes: Record<string, unknown> = {}
const peakMB = (): number => process.resourceUsage().maxRSS / 1024
const before = peakMB()
for (const [name, [coding, bytes]] of Object.entries(bombs)) {
  if (bytes.length > BATCH_LIMIT) throw new Error(`${name} has ${bytes.length} bytes.`)
  const headers = { 'content-type': 'application/json', authorization: basic(writeKey), 'content-encoding': coding }
  outcomes[name] = (await post('/v1/batch', bytes, { headers })).json.code
}
console.log(JSON.stringify({ outcomes, growthMB: peakMB() - before }))

import { describe, expect, it } from 'vitest'
import { createCollector } from '../../src/collect/create-collector.ts'
import { recorder } from '../support/collect.ts'

const destination = recorder()
const shop = { name: 'shop', writeKey: 'key 1', destinations: [destination] }
const app = { name: 'app', writeKey: 'key 2', destinations: [destination] }
const sources = [shop]

describe('createCollector refuses', () => {
  it.each([
    ['sources', {}],
    ['sources', { sources: shop }],
    ['sources[1]', { sources: [shop, null] }],
    ['sources[0].name', { sources: [{ ...shop, name: '' }] }],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: '' }] }],
    ['`sources[0].writeKey`', { sources: [{ ...shop, writeKey: undefined }] }],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: 'a:b' }] }],
    ['`sources[1].name`', { sources: [shop, { ...app, name: 'shop' }] }],
    ['`sources[1].writeKey`', { sources: [shop, { ...app, writeKey: 'key 1' }] }],
    ['`sources[0].kind`', { sources: [{ ...shop, kind: 'sever' }] }],
    ['sources[0].writekey', { sources: [{ ...shop, writekey: 'x' }] }],
    ['sources[0].destinations', { sources: [{ ...shop, destinations: destination }] }],
    ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, {}] }] }],
    ['`sources[0].destinations[1]`', { sources: [{ ...shop, destinations: [destination, destination] }] }],
    ['source', { source: [] }],
    ['ipHeader', { sources, ipHeader: '' }],
    ['`ipHeader`', { sources, ipHeader: 'X-Real-IP:' }],
    ['deadlineMs', { sources, deadlineMs: 0 }],
    ['onError', { sources, onError: {} }],
    ['logger.error', { sources, logger: {} }],
    ['clock.setTimeout', { sources, clock: { now: () => 0, monotonic: () => 0 } }],
  ])('%s: %j', (option, options) => {
    expect(() => createCollector(options as never)).toThrow(TypeError)
    expect(() => createCollector(options as never)).toThrow(option)
  })

  it.each([undefined, null, 'sources'])('options that are not an object: %j', (options) => {
    expect(() => createCollector(options as never)).toThrow('`createCollector: options`')
  })

  it('never shows a write key', () => {
    const second = { ...app, writeKey: 'hunter2' }
    for (const sources of [[{ ...shop, writeKey: 'hunter2:' }], [{ ...shop, writeKey: 'hunter2' }, second]]) {
      const create = () => createCollector({ sources })
      expect(create).toThrow(TypeError)
      expect(create).not.toThrow('hunter2')
    }
  })

  it('takes sources that share a destination, or have none yet', () => {
    expect(() =>
      createCollector({ sources: [shop, app, { name: 'b', writeKey: 'b', destinations: [] }] }),
    ).not.toThrow()
  })
})

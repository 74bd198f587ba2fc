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
    ['sources', { sources: [] }],
    ['sources', { sources: shop }],
    ['sources[1]', { sources: [shop, null] }],
    ['sources[0].name', { sources: [{ ...shop, name: '' }] }],
    ['sources[0].name', { sources: [{ ...shop, name: undefined }] }],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: '' }] }],
    [
      '`sources[0].writeKey` must be a non-empty string. Got undefined. Pass the write key of the source. If it is not set yet when this module is loaded, call this function later, at the first use.',
      { sources: [{ ...shop, writeKey: undefined }] },
    ],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: 'a:b' }] }],
    [
      '`sources[1].name` must differ from `sources[0].name`. Got the same.',
      { sources: [shop, { ...app, name: 'shop' }] },
    ],
    [
      '`sources[1].writeKey` must differ from `sources[0].writeKey`. Got the same.',
      { sources: [shop, { ...app, writeKey: 'key 1' }] },
    ],
    [
      "`sources[0].kind` must be one of 'web', 'mobile', 'server'. Got 'sever'. Did you mean 'server'?",
      { sources: [{ ...shop, kind: 'sever' }] },
    ],
    ['sources[0].kind', { sources: [{ ...shop, kind: null }] }],
    ['sources[0].writekey', { sources: [{ ...shop, writekey: 'x' }] }],
    ['sources[0].destinations', { sources: [{ ...shop, destinations: destination }] }],
    ['sources[0].destinations', { sources: [{ name: 'shop', writeKey: 'x' }] }],
    ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, {}] }] }],
    ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, null] }] }],
    [
      '`sources[0].destinations[1]` must differ from `sources[0].destinations[0]`',
      { sources: [{ ...shop, destinations: [destination, destination] }] },
    ],
    ['source', { source: [] }],
    ['ipHeader', { sources, ipHeader: '' }],
    ['ipHeader', { sources, ipHeader: true }],
    ["`ipHeader` must be the name of a header. Got 'X-Real-IP:'. Pass a name", { sources, ipHeader: 'X-Real-IP:' }],
    ['deadlineMs', { sources, deadlineMs: 0 }],
    ['deadlineMs', { sources, deadlineMs: 2 ** 31 }],
    ['deadlineMs', { sources, deadlineMs: '30s' }],
    ['onError', { sources, onError: {} }],
    ['onError', { sources, onError: null }],
    ['logger.error', { sources, logger: {} }],
    ['clock.now', { sources, clock: null }],
    ['clock.setTimeout', { sources, clock: { now: () => 0, monotonic: () => 0 } }],
  ])('%s: %j', (option, options) => {
    expect(() => createCollector(options as never)).toThrow(TypeError)
    expect(() => createCollector(options as never)).toThrow(option)
  })

  it.each([undefined, null, 'sources'])('options that are not an object: %j', (options) => {
    expect(() => createCollector(options as never)).toThrow('`createCollector: options` must be an object. Got ')
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

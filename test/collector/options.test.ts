import { describe, expect, it } from 'vitest'
import { createCollector } from '../../src/collector/collector.ts'
import { recorder } from '../support/collect.ts'

const destination = recorder()
const shop = { name: 'shop', writeKey: 'key 1', destinations: [destination] }
const app = { name: 'app', writeKey: 'key 2', destinations: [destination] }
const sources = [shop]

describe('createCollector tells the developer', () => {
  it.each([
    ['sources', {}],
    ['sources', { sources: [] }],
    ['sources', { sources: shop }],
    ['sources[1]', { sources: [shop, null] }],
    ['sources[0].name', { sources: [{ ...shop, name: '' }] }],
    ['sources[0].name', { sources: [{ ...shop, name: undefined }] }],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: '' }] }],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: undefined }] }],
    ['sources[0].writeKey', { sources: [{ ...shop, writeKey: 'a:b' }] }],
    ['sources[1].name: is the same as sources[0].name', { sources: [shop, { ...app, name: 'shop' }] }],
    ['sources[1].writeKey: is the same as sources[0].writeKey', { sources: [shop, { ...app, writeKey: 'key 1' }] }],
    ['sources[0].writekey', { sources: [{ ...shop, writekey: 'x' }] }],
    ['sources[0].destinations', { sources: [{ ...shop, destinations: destination }] }],
    ['sources[0].destinations', { sources: [{ name: 'shop', writeKey: 'x' }] }],
    ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, {}] }] }],
    ['sources[0].destinations[1]', { sources: [{ ...shop, destinations: [destination, null] }] }],
    ['sources[0].destinations[1]: is the same', { sources: [{ ...shop, destinations: [destination, destination] }] }],
    ['source', { source: [] }],
    ['ipHeader', { sources, ipHeader: '' }],
    ['ipHeader', { sources, ipHeader: true }],
    ['deadlineMs', { sources, deadlineMs: 0 }],
    ['deadlineMs', { sources, deadlineMs: 2 ** 31 }],
    ['deadlineMs', { sources, deadlineMs: '30s' }],
    ['onError', { sources, onError: {} }],
    ['onError', { sources, onError: null }],
    ['clock.now', { sources, clock: null }],
    ['clock.setTimeout', { sources, clock: { now: () => 0, monotonic: () => 0 } }],
  ])('%s: %j', (option, options) => {
    expect(() => createCollector(options as never)).toThrow(TypeError)
    expect(() => createCollector(options as never)).toThrow(option)
  })

  it.each([undefined, null, 'sources'])('about options that are none: %j', (options) => {
    expect(() => createCollector(options as never)).toThrow('createCollector: give it options')
  })

  it('never shows a write key', () => {
    const create = () => createCollector({ sources: [{ ...shop, writeKey: 'hunter2:' }, shop] })
    expect(create).toThrow(TypeError)
    expect(create).not.toThrow('hunter2')
  })

  it('nothing about several sources that share a destination, or have none yet', () => {
    expect(() =>
      createCollector({ sources: [shop, app, { name: 'b', writeKey: 'b', destinations: [] }] }),
    ).not.toThrow()
  })
})

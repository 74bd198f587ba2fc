/** The short form of `load.ts`, on a machine that may do other things. */

import { expect, inject } from 'vitest'
import { launchChromium } from './chromium.ts'
import { findExcess, measureLoad } from './measure.ts'
import { test } from './test.ts'

test('1 000 messages a second: nothing is lost, memory stays flat, the page responds', {
  timeout: 120_000,
}, async () => {
  const browser = await launchChromium()
  try {
    const load = await measureLoad(inject('directory'), browser, 10)
    expect(findExcess(load, 4), JSON.stringify(load)).toEqual([])
  } finally {
    await browser.close()
  }
})

/**
 * 1 000 messages a second while the page is open, `node tools/inspector/test/browser/load.ts --seconds 60` after a build. Prints what the server and
 * the page use meanwhile, the longest task of the page, and what was lost. Fails when that is too much.
 */

import { rm } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { launchChromium } from './chromium.ts'
import { findExcess, measureLoad } from './measure.ts'
import { createProject } from './project.ts'

const { values } = parseArgs({ options: { seconds: { type: 'string', default: '60' } } })
const seconds = Number(values.seconds)
if (!(seconds > 0)) throw new TypeError('--seconds: must be a number above 0.')

const directory = await createProject()
const browser = await launchChromium()
try {
  const { samples, ...load } = await measureLoad(directory, browser, seconds)
  const mb = (bytes: number): string => (bytes / 1e6).toFixed(1)
  console.table(
    samples.map(({ seconds, serverHeapBytes, serverBytes, pageHeapBytes, listeners, nodes }) => ({
      seconds,
      'server heap, MB': mb(serverHeapBytes),
      'server, MB': mb(serverBytes),
      'page heap, MB': mb(pageHeapBytes),
      listeners,
      nodes,
    })),
  )
  console.log(load)
  const excess = findExcess({ samples, ...load }, 1)
  for (const line of excess) console.error(line)
  if (excess.length > 0) process.exitCode = 1
} finally {
  await browser.close()
  await rm(directory, { recursive: true, force: true })
}

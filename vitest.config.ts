/** The tests of `npm test`. Those that kill processes for minutes have a script of their own, which sets CRASH_ROUNDS. */

import { realpathSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, normalize } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { buildPage } from './src/inspector/page/build.ts'
import { LeftOutReporter, TAGS } from './test/support/left-out.ts'

/** On macOS it has a symbolic link in its path, on Windows a short name: then paths in messages are others than those of the tests. */
const folder = realpathSync.native(tmpdir())
const isCrash = process.env.CRASH_ROUNDS !== undefined

/** They take longest. Without them the last ones would run alone: a fresh clone has no times of earlier runs, and goes by size. */
const FIRST = [
  'test/adapters/contract.test.ts',
  'test/cli/listen.test.ts',
  'test/cli/check-sender/sender.test.ts',
  'test/start.test.ts',
  'test/cli/examples.test.ts',
  'test/cli/check-sender/faults.test.ts',
].map((file) => realpathSync(join(import.meta.dirname, file))) // Throws for one that has another name now.

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const { first = [], others = [] } = Object.groupBy(files, ({ moduleId }) =>
      FIRST.includes(normalize(moduleId)) ? 'first' : 'others',
    )
    return [...first, ...(await super.sort(others))]
  }
}

export default defineConfig({
  define: { HOOKLINE_PAGE: JSON.stringify(JSON.stringify((await buildPage()).page)) },
  test: {
    include: ['test/**/*.test.ts', 'examples/testing/*.vitest.test.ts'],
    globalSetup: ['test/support/servers.ts'],
    reporters: ['default', new LeftOutReporter()],
    tags: TAGS,
    exclude: [
      'test/package/**',
      'test/everywhere/**',
      'test/browser/**',
      'test/docs/code.test.ts',
      'test/docs/deploy.test.ts',
      ...(isCrash ? [] : ['test/crash/**']),
    ],
    execArgv: ['--disable-warning=HOOKLINE_REDIS_PERSISTENCE'], // The Redis of the tests may keep no append-only file.
    isolate: false, // A worker loads the sources once.
    sequence: { sequencer: LongestFirst },
    slowTestThreshold: 10_000, // One line a file.
    testTimeout: 30_000, // It ends what hangs. What has to be quick measures that itself.
    hookTimeout: 60_000,
    // Programs and threads that tests start compile the same files.
    env: {
      ...{ TMPDIR: folder, TEMP: folder, TMP: folder },
      NODE_COMPILE_CACHE: join(import.meta.dirname, '.cache/compiled'),
      ...(process.argv.includes('--coverage') && { COVERAGE: 'true' }),
    },
    maxWorkers: (isCrash ? 1 : 2) * availableParallelism(), // They often wait: for servers, leases, processes.
    coverage: {
      provider: 'v8',
      reporter: ['html', ['text', { skipFull: true }]],
      include: ['src/**/*.{js,ts}', 'adapters/**/*.ts'],
      thresholds: {
        'src/{message,time,sqlite,collections,options,http,handling,inbox}/**': { lines: 100, branches: 97 },
        'src/receiver/**': { lines: 100, branches: 97 },
        'src/dedupe/**': { lines: 100, branches: 97 },
        'src/queues/**': { lines: 99.5, branches: 97 }, // Some lines run only when a server or a disk is slow.
        'src/{sender,destination}/**': { lines: 100, branches: 97 },
        'src/collector/**': { lines: 100, branches: 97 },
        'src/client/**': { lines: 100, branches: 97 },
        'src/inspector/*.ts': { lines: 98.5, branches: 93 }, // Not what runs in its thread.
        'src/inspector/endpoint/**': { lines: 100, branches: 95 }, // Its page has tests of its own, in a browser.
      },
    },
  },
})

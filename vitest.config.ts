/** The tests, as projects: `npm test` runs `default`, `npx vitest run --project NAME` another one. */

import { realpathSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, normalize } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { RELEASES } from './test/support/engine-releases.ts'
import { LastLinesReporter, TAGS } from './test/support/last-lines.ts'
import { buildPage } from './tools/inspector/build-page.ts'

/** On macOS it has a symbolic link in its path, on Windows a short name: then paths in messages are others than those of the tests. */
const folder = realpathSync.native(tmpdir())

/** They take longest. Without them the last ones would run alone: a fresh clone has no times of earlier runs, and goes by size. */
const FIRST = ['test/adapters/contract.test.ts'].map((file) => realpathSync(join(import.meta.dirname, file))) // Throws for one that has another name now.

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const { first = [], others = [] } = Object.groupBy(files, ({ moduleId }) =>
      FIRST.includes(normalize(moduleId)) ? 'first' : 'others',
    )
    return [...first, ...(await super.sort(others))]
  }
}

/** The files that the project `default` leaves to others, which need more than Node: servers, other processes and programs, the nightly run. */
const ENGINES = ['{test,tools}/**/*.engines.test.ts']
const PROCESSES = ['{test,tools}/**/*.process.test.ts']
const NIGHTLY = ['{test,tools}/**/*.nightly.test.ts']
const CRASH = ['test/crash/**/*.test.ts']
const PACKAGE = ['test/package/**/*.test.ts', 'test/docs/code.test.ts']
const EVERYWHERE = ['test/everywhere/**/*.test.ts']
const BROWSER = ['tools/inspector/test/browser/**/*.test.ts']

/** What `default` and `crash` share: both run the sources. */
const onSources = {
  isolate: false, // A worker loads the sources once.
  testTimeout: 30_000 * Number(process.env.PROPERTIES ?? 1), // It ends what hangs. What has to be quick measures that itself.
  hookTimeout: 60_000,
}

/** Groups run one after the other; the browser, whose files run one by one, comes last. */
const projects: TestProjectInlineConfiguration[] = [
  {
    test: {
      name: 'default',
      ...onSources,
      include: ['{test,tools}/**/*.test.ts', 'examples/testing/*.vitest.test.ts'],
      exclude: [...ENGINES, ...PROCESSES, ...NIGHTLY, ...CRASH, ...PACKAGE, ...EVERYWHERE, ...BROWSER],
      maxWorkers: 2 * availableParallelism(), // They often wait: for servers, leases, processes.
    },
  },
  ...Object.entries({ engines: ENGINES, processes: PROCESSES, nightly: NIGHTLY }).map(([name, include]) => ({
    test: { name, ...onSources, include, maxWorkers: 2 * availableParallelism() },
  })),
  {
    test: {
      name: 'crash',
      ...onSources,
      include: CRASH,
      maxWorkers: availableParallelism(),
      sequence: { groupOrder: 1 },
    },
  },
  {
    test: {
      name: 'package',
      include: PACKAGE,
      testTimeout: 180_000, // Bundlers and installs, on a machine that is slow for a while.
      hookTimeout: 240_000,
      sequence: { groupOrder: 2, shuffle: false }, // A suite follows one deployment, or one guide, from its first step to its last.
    },
  },
  ...RELEASES.map(({ name, modules }) => ({
    resolve: { alias: { bullmq: join(modules, 'bullmq'), ioredis: join(modules, 'ioredis') } },
    test: {
      name,
      include: ['test/store/bullmq/*.engines.test.ts'],
      globalSetup: ['test/support/engine-releases.ts'],
      testTimeout: 30_000,
      sequence: { groupOrder: 2 },
    },
  })),
  {
    test: {
      name: 'everywhere',
      include: EVERYWHERE,
      expect: { poll: { timeout: 20_000 } },
      maxConcurrency: 2, // Builds of hosts, on two cores.
      testTimeout: 240_000,
      hookTimeout: 240_000,
      sequence: { groupOrder: 2, shuffle: false }, // A suite is the life of one server, from its first message to its end.
    },
  },
  {
    test: {
      name: 'browser',
      include: BROWSER,
      globalSetup: ['tools/inspector/test/browser/project.ts'],
      fileParallelism: false, // Each file has a Chromium and apps of its own.
      expect: { poll: { timeout: 10_000 } },
      testTimeout: 60_000,
      hookTimeout: 60_000,
    },
  },
]

export default defineConfig({
  resolve: { tsconfigPaths: true }, // The tools import the library by its public names.
  define: { HOOKLINE_PAGE: JSON.stringify(JSON.stringify((await buildPage()).page)) },
  test: {
    projects,
    exclude: ['**/node_modules/**'],
    setupFiles: ['test/support/properties.ts'],
    globalSetup: ['test/support/servers.ts'],
    reporters: ['default', new LastLinesReporter()],
    tags: TAGS,
    execArgv: ['--disable-warning=HOOKLINE_REDIS_PERSISTENCE'], // The Redis of the tests may keep no append-only file.
    // A fixed order of the tests of a file, until the nightly run or --sequence.seed takes another.
    sequence: {
      shuffle: { tests: true },
      sequencer: LongestFirst,
      ...(process.env.PROPERTIES === undefined && { seed: 1 }),
    },
    slowTestThreshold: 10_000, // One line a file.
    // Programs and threads that tests start compile the same files.
    env: {
      ...{ TMPDIR: folder, TEMP: folder, TMP: folder },
      TZ: 'America/New_York', // So that a test fails when a time without a zone is read as one of this machine.
      NODE_COMPILE_CACHE: join(import.meta.dirname, '.cache/compiled'),
      ...(process.argv.includes('--coverage') && { COVERAGE: 'true' }),
    },
    coverage: {
      provider: 'v8',
      reportOnFailure: true,
      reporter: ['html', ['text', { skipFull: true }]],
      include: ['{src,tools/*/src}/**/*.{js,ts}', 'adapters/**/*.ts'],
      thresholds: {
        'src/{protocol,kit,host,receive,send,collect}/**': { lines: 100, branches: 97 },
        'src/observe/inspect-queue.ts': { lines: 100, branches: 97 },
        // Some lines run only when a disk is slow, or on another system. BullMQ and pg-boss are those of `engines`.
        'src/store/{*,memory/*,sqlite/*,*/*-options}.ts': { lines: 99, branches: 95 },
        'tools/inspector/src/*.ts': { lines: 98, branches: 92 }, // Not what runs in its thread.
        'tools/inspector/src/endpoint/**': { lines: 98, branches: 88 }, // Its page has tests of its own, in a browser.
      },
    },
  },
})

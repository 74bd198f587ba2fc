/** The inspector's page in a real Chromium, served by the packed tarball. */

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/project.ts'],
    fileParallelism: false, // Some tests measure how long the page is busy.
    expect: { poll: { timeout: 10_000 } },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    slowTestThreshold: 20_000,
  },
})

/** The packed tarball on other runtimes, behind other hosts and with released clients. `test/everywhere` has packages of its own. */

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/everywhere/**/*.test.ts'],
    exclude: ['**/node_modules/**'],
    globalSetup: ['test/support/servers.ts'],
    expect: { poll: { timeout: 20_000 } },
    maxConcurrency: 2, // Builds of hosts, on two cores.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    slowTestThreshold: 10_000,
  },
})

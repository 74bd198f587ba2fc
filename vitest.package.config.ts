/** The slow part: the packed tarball on every supported Node, and its types under every supported module setting. */

import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/package/**/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 240_000,
  },
})

/** What takes long: the packed tarball on every supported Node, its types under every supported module setting, code blocks, and deployments. */

import { defineConfig } from 'vitest/config'
import { TAGS } from './test/support/left-out.ts'

export default defineConfig({
  test: {
    include: ['test/package/**/*.test.ts', 'test/docs/code.test.ts', 'test/docs/deploy.test.ts'],
    tags: TAGS,
    testTimeout: 60_000,
    hookTimeout: 240_000,
  },
})

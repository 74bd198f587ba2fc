import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/package/**'],
    typecheck: { enabled: true, include: ['test/**/*.test-d.ts'], tsconfig: 'tsconfig.json' },
    coverage: {
      provider: 'v8',
      include: ['src/protocol/**', 'src/receiver/**', 'src/testing/**', 'adapters/**'],
      thresholds: {
        'src/protocol/**': { lines: 100, branches: 97 },
        'src/receiver/**': { lines: 100, branches: 97 },
      },
    },
  },
})
